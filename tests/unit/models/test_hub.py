from __future__ import annotations

import hashlib
import socket

import pytest

from monkeycode_lsp.errors import DownloadError
from monkeycode_lsp.models.part import DiskError
from monkeycode_lsp.models.pull import pull
from monkeycode_lsp.models.sources.hub import DEFAULT_ENDPOINT, Hub
from tests.unit.models import samples
from tests.unit.models.hub_server import HubServer

CONTENT = samples.CONTENT


def fetch(server, folder, heard, *, entry=None, environ=None, pauses=None, **options):
    hub = Hub(mirror=server.url, environ=environ or {"HF_HOME": str(folder)}, pause=(pauses if pauses is not None else []).append)
    return pull(entry or samples.entry(), progress=heard, sources=[hub], folder=folder, **options)


def leave_part(folder, content):
    (folder / f"{samples.entry().file}.part").write_bytes(content)


def no_part_left(folder):
    return not list(folder.glob("*.part"))


def test_a_file_arrives_whole_under_its_name(hub_server, tmp_path, heard):
    path = fetch(hub_server, tmp_path, heard)
    assert path == tmp_path / samples.entry().file
    assert path.read_bytes() == CONTENT
    assert no_part_left(tmp_path)
    assert hub_server.asked[0][0] == "/Tiny/Tiny-Coder-GGUF/resolve/main/tiny-coder-0.1b-q4_k_m.gguf"


def test_progress_grows_to_the_whole(hub_server, tmp_path, heard):
    fetch(hub_server, tmp_path, heard)
    done = [done for stage, done, _ in heard.calls if stage == "Downloading"]
    assert done == sorted(done)
    assert heard.calls[-1] == ("Downloading", len(CONTENT), len(CONTENT))


def test_a_cut_transfer_goes_on_where_it_stopped(hub_server, tmp_path, heard):
    hub_server.cuts = [100_000, 70_000]
    pauses = []
    assert fetch(hub_server, tmp_path, heard, pauses=pauses).read_bytes() == CONTENT
    starts = [int(headers.get("Range", "bytes=0-")[6:-1]) for headers in hub_server.transfers]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert len(starts) == 3
    assert len(pauses) == 2


def test_a_transfer_that_never_moves_is_given_up_and_what_came_is_kept(hub_server, tmp_path, heard):
    hub_server.cuts = [131_072, 0, 0, 0, 0]
    with pytest.raises(DownloadError, match="the download stopped after 131072 bytes") as caught:
        fetch(hub_server, tmp_path, heard)
    assert "goes on where it stopped" in caught.value.remedy
    assert (tmp_path / f"{samples.entry().file}.part").read_bytes() == CONTENT[:131_072]


def test_a_later_pull_asks_only_for_the_rest(hub_server, tmp_path, heard):
    leave_part(tmp_path, CONTENT[:200_000])
    assert fetch(hub_server, tmp_path, heard).read_bytes() == CONTENT
    assert [headers["Range"] for headers in hub_server.transfers] == ["bytes=200000-"]
    assert "Checking what is already here" in heard.stages


def test_a_whole_part_needs_no_request(hub_server, tmp_path, heard):
    leave_part(tmp_path, CONTENT)
    assert fetch(hub_server, tmp_path, heard).read_bytes() == CONTENT
    assert hub_server.asked == []


def test_a_server_that_ignores_ranges_sends_all_again(hub_server, tmp_path, heard):
    hub_server.ranges = False
    leave_part(tmp_path, CONTENT[:200_000])
    assert fetch(hub_server, tmp_path, heard).read_bytes() == CONTENT
    assert len(hub_server.transfers) == 1


def test_a_range_that_begins_earlier_is_used_from_there(hub_server, tmp_path, heard):
    hub_server.range_shift = -50_000
    leave_part(tmp_path, CONTENT[:200_000])
    assert fetch(hub_server, tmp_path, heard).read_bytes() == CONTENT
    assert len(hub_server.transfers) == 1


def test_a_range_that_leaves_a_gap_is_refused(hub_server, tmp_path, heard):
    hub_server.range_shift = 10
    leave_part(tmp_path, CONTENT[:200_000])
    with pytest.raises(DownloadError, match="sends another part of the file"):
        fetch(hub_server, tmp_path, heard)
    assert (tmp_path / f"{samples.entry().file}.part").read_bytes() == CONTENT[:200_000]


def test_a_part_longer_than_the_file_is_thrown_away(hub_server, tmp_path, heard):
    leave_part(tmp_path, CONTENT + b"more")
    assert fetch(hub_server, tmp_path, heard).read_bytes() == CONTENT


def test_a_wrong_part_is_found_and_fetched_again_from_the_start(hub_server, tmp_path, heard):
    leave_part(tmp_path, b"x" * 200_000)
    assert fetch(hub_server, tmp_path, heard).read_bytes() == CONTENT
    assert "The part that was here was wrong; starting again" in heard.stages


def test_wrong_bytes_never_get_the_models_name(hub_server, tmp_path, heard):
    hub_server.content = CONTENT[:-1] + b"?"
    hub_server.announces = False
    with pytest.raises(DownloadError, match="not the file that was asked for: its SHA-256 is"):
        fetch(hub_server, tmp_path, heard)
    assert not list(tmp_path.glob("*.gguf*"))


def test_another_file_under_the_name_is_refused_before_it_is_downloaded(hub_server, tmp_path, heard):
    hub_server.announced_sha256 = "0" * 64
    with pytest.raises(DownloadError, match="another file under this name"):
        fetch(hub_server, tmp_path, heard)
    assert "Downloading" not in heard.stages


def test_a_transfer_without_end_is_stopped_at_the_known_size(hub_server, tmp_path, heard):
    hub_server.announces = False
    hub_server.tells_length = False
    with pytest.raises(DownloadError, match="instead of 1000"):
        fetch(hub_server, tmp_path, heard, entry=samples.entry(CONTENT[:1000]))
    assert max(done for stage, done, _ in heard.calls if stage == "Downloading") < len(CONTENT)
    assert no_part_left(tmp_path)


@pytest.mark.parametrize("redirects", [True, False])
def test_without_a_pinned_hash_the_announced_one_is_used(hub_server, tmp_path, heard, redirects):
    hub_server.content = samples.gguf()
    hub_server.redirects = redirects
    entry = samples.entry(bytes=None, sha256="", approximate_bytes=1000)
    assert fetch(hub_server, tmp_path, heard, entry=entry).read_bytes() == hub_server.content


def test_without_any_hash_nothing_is_downloaded(hub_server, tmp_path, heard):
    hub_server.announces = False
    with pytest.raises(DownloadError, match="announces no checksum"):
        fetch(hub_server, tmp_path, heard, entry=samples.entry(bytes=None, sha256="", approximate_bytes=1000))
    assert "Downloading" not in heard.stages


def test_an_announced_hash_that_is_wrong_is_an_error(hub_server, tmp_path, heard):
    hub_server.announced_sha256 = "0" * 64
    with pytest.raises(DownloadError, match="not the file that was asked for"):
        fetch(hub_server, tmp_path, heard, entry=samples.entry(bytes=None, sha256="", approximate_bytes=1000))


def test_a_hub_file_that_is_no_model_is_refused(hub_server, tmp_path, heard):
    with pytest.raises(DownloadError, match="is not a GGUF model"):
        fetch(hub_server, tmp_path, heard, entry=samples.entry(bytes=None, sha256="", approximate_bytes=1000))
    assert not list(tmp_path.glob("*.gguf*"))


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, ("refuses this file without permission", "HF_TOKEN")),
        (403, ("refuses this file without permission", "HF_TOKEN")),
        (404, ("does not have this file", "HF_ENDPOINT")),
        (418, ("answers HTTP 418", "HF_ENDPOINT")),
    ],
)
def test_a_refusal_is_said_in_words_and_not_repeated(hub_server, tmp_path, heard, status, says):
    words, remedy = says
    hub_server.statuses = [status]
    with pytest.raises(DownloadError, match=words) as caught:
        fetch(hub_server, tmp_path, heard)
    assert remedy in caught.value.remedy
    assert len(hub_server.asked) == 1
    assert no_part_left(tmp_path)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_hub_is_asked_again_after_the_time_it_names(hub_server, tmp_path, heard, status):
    hub_server.statuses = [status]
    hub_server.retry_after = "7"
    pauses = []
    fetch(hub_server, tmp_path, heard, pauses=pauses)
    assert pauses == [7]


def test_a_hub_that_wants_an_hour_is_not_waited_for(hub_server, tmp_path, heard):
    hub_server.statuses = [429] * 4
    hub_server.retry_after = "3600"
    pauses = []
    with pytest.raises(DownloadError, match="HTTP 429"):
        fetch(hub_server, tmp_path, heard, pauses=pauses)
    assert max(pauses) <= 10


def test_a_closed_port_is_given_up_at_once(tmp_path, heard):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    leave_part(tmp_path, CONTENT[:1000])  # even with something to continue
    pauses = []
    hub = Hub(mirror=url, environ={"HF_HOME": str(tmp_path)}, pause=pauses.append)
    with pytest.raises(DownloadError, match="cannot be reached"):
        pull(samples.entry(), progress=heard, sources=[hub], folder=tmp_path)
    assert pauses == []
    assert (tmp_path / f"{samples.entry().file}.part").stat().st_size == 1000


def test_a_silent_hub_is_given_up_after_the_bound(hub_server, tmp_path, heard):
    hub_server.hold_head = True
    hub = Hub(mirror=hub_server.url, environ={"HF_HOME": str(tmp_path)}, answer_s=0.2)
    with pytest.raises(DownloadError, match=r"did not answer within 0\.2 seconds"):
        pull(samples.entry(), progress=heard, sources=[hub], folder=tmp_path)


def test_an_address_that_is_none_names_the_variable(tmp_path, heard):
    hub = Hub(environ={"HF_ENDPOINT": "nonsense", "HF_HOME": str(tmp_path)})
    with pytest.raises(DownloadError, match="cannot be used") as caught:
        pull(samples.entry(), progress=heard, sources=[hub], folder=tmp_path)
    assert "Check HF_ENDPOINT" in caught.value.remedy


def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(hub_server, tmp_path, heard):
    with HubServer(CONTENT) as store:
        hub_server.store_url = store.url
        fetch(hub_server, tmp_path, heard, environ={"HF_TOKEN": "secret"})
        assert hub_server.asked[0][1]["Authorization"] == "Bearer secret"
        assert len(store.transfers) == 1
        assert "Authorization" not in store.transfers[0]


def test_the_token_file_of_the_hubs_own_client_is_read(hub_server, tmp_path, heard):
    (tmp_path / "token").write_text("from-file\n")
    fetch(hub_server, tmp_path, heard, environ={"HF_HOME": str(tmp_path)})
    assert hub_server.asked[0][1]["Authorization"] == "Bearer from-file"


def test_offline_mode_is_obeyed(hub_server, tmp_path, heard):
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE"):
        fetch(hub_server, tmp_path, heard, environ={"HF_HUB_OFFLINE": "1"})
    assert hub_server.asked == []


@pytest.mark.parametrize(
    ("mirror", "environ", "endpoint"),
    [
        ("", {}, DEFAULT_ENDPOINT),
        ("", {"HF_ENDPOINT": "https://mirror.example/"}, "https://mirror.example"),
        ("https://mine.example", {"HF_ENDPOINT": "https://mirror.example"}, "https://mine.example"),
    ],
)
def test_the_setting_comes_before_the_variable_before_the_hub(mirror, environ, endpoint):
    assert Hub(mirror=mirror, environ=environ).endpoint == endpoint


def test_a_full_disk_is_found_before_the_transfer(hub_server, tmp_path, heard):
    with pytest.raises(DiskError, match="not enough room") as caught:
        fetch(hub_server, tmp_path, heard, free_bytes=lambda _: len(CONTENT) // 2)
    assert "Downloading" not in heard.stages
    assert "MONKEYCODE_HOME" in caught.value.remedy


def test_only_the_missing_rest_must_fit_on_the_disk(hub_server, tmp_path, heard):
    leave_part(tmp_path, CONTENT[:-1000])
    spare = (64 << 20) + 1000
    assert fetch(hub_server, tmp_path, heard, free_bytes=lambda _: spare).read_bytes() == CONTENT


def test_an_interrupted_pull_is_continued_by_the_next(hub_server, tmp_path, heard):
    def interrupt(stage, done, total):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(hub_server, tmp_path, interrupt)
    kept = (tmp_path / f"{samples.entry().file}.part").read_bytes()
    assert len(kept) > 100_000
    assert CONTENT.startswith(kept)
    fetch(hub_server, tmp_path, heard)
    assert hub_server.transfers[-1]["Range"] == f"bytes={len(kept)}-"
    assert hashlib.sha256((tmp_path / samples.entry().file).read_bytes()).hexdigest() == samples.entry().sha256
