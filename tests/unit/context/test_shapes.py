"""Where secrets stand in a text, and where none do."""

import base64
import hashlib
import itertools
import time

import pytest

from monkeycode_lsp.context import shapes

LINES = {"secret in a settings file", "password in an environment", "password in YAML"}
RANDOM = "kV9mQ2xW7bN5tR8pL1cZ4fH6jG0sYqE3"


def found(text):
    return [text[first:last] for first, last in shapes.find(text)]


@pytest.mark.parametrize("shape", shapes.shipped(), ids=lambda shape: shape.name)
def test_every_shape_finds_its_example_and_none_of_its_pieces(shape):
    assert found(f"{''.join(shape.example)}\n")
    if shape.name not in LINES:
        assert found(f"x = '{''.join(shape.example)}' + y")
    assert found("\n".join(shape.example[:1])) == []


@pytest.mark.parametrize("shape", shapes.shipped(), ids=lambda shape: shape.name)
def test_every_beginning_of_a_shape_is_one_of_its_pattern(shape):
    text = "".join(shape.example)
    assert any(begins.lower() in text.lower() for begins in shape.begins)


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = "{RANDOM}"',
        f"apiKey: '{RANDOM}',",
        f'"client_secret": "{RANDOM}"',
        f"const token: string = `{RANDOM}`",
        f'config["secret_key"] = "{RANDOM}"',
        f'os.environ.setdefault("API_TOKEN", "{RANDOM}")'.replace("API_TOKEN", "token"),
        f"SECRET_KEY={RANDOM}",
        f"  auth_token: {RANDOM}",
        f"Authorization: Bearer {RANDOM}",
        f'headers = {{"Authorization": "Basic {RANDOM}=="}}',
        f"curl https://h/x?access_token={RANDOM}",
        'password = "hunter2"',
        "passwd: 'Tr0ub4dor&3',",
        'DB_PASSWORD="correct-horse-8"',
        'if password == "s3cr3t!":',
        "define('DB_PASSWORD', 'a8Xq!z');",
        'password = "unfinished1',
        "amqp://shop:hunter2@queue:5672/x",
        "DSN = 'https://a81b2c3d@sentry.example/1'".replace("a81b2c3d@", "user:a81b2c3d@"),
        "DB_PASSWORD=Sommer2024!  # old",
        "    password: Sommer2024!",
        f'const apiToken string = "{RANDOM}"',
        f'var apiToken string = "{RANDOM}"',
        f'const API_TOKEN: &str = "{RANDOM}";',
        f'const API_TOKEN: &\'static str = "{RANDOM}";',
        f'#define API_TOKEN "{RANDOM}"',
        f'def f(token: str | None = "{RANDOM}"): pass',
        f'token: Final[Optional[str]] = "{RANDOM}"',
        f'token = """{RANDOM}"""',
        f"token = '''{RANDOM}'''",
        f'x = "{{\\"token\\": \\"{RANDOM}\\"}}"',
        f'API_TOKEN = ("{RANDOM}")',
        f'apiToken := []byte("{RANDOM}")',
        f"<apiToken>{RANDOM}</apiToken>",
        "<password>Sommer2024!</password>",
        f'<add key="ApiToken" value="{RANDOM}"/>',
        f"deploy --token={RANDOM} --now",
        f"deploy --api-token {RANDOM} --now",
        "mysql --password=Sommer2024! shop",
        "curl -u admin:Sommer2024! https://h/",
        f"https://{RANDOM}@github.com/x",
        f"https://{RANDOM}:x-oauth-basic@github.com/x",
        f"x = eyJ{RANDOM}..{RANDOM[:16]}.{RANDOM * 20}.{RANDOM[:22]}",
        "proj_ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    ],
)
def test_what_is_assigned_or_sent_as_a_secret_is_one(line):
    assert len(found(line)) == 1, found(line)
    assert found(line)[0] in line


@pytest.mark.parametrize(
    "line",
    [
        "password = get_password()",
        "def login(user: str, password: str = '') -> None:",
        'password = os.environ["DB_PASSWORD"]',
        'password = "${DB_PASSWORD}"',
        "password: {{ vault_password }}",
        'password = "<your password>"',
        'password = "changeme1"',
        'input type="password" name="password" id="password-field"',
        "postgres://user:password@localhost/db",
        "https://{user}:{token}@host/",
        "http://localhost:8080/a@b",
        'token = "TOKEN_TYPE_IDENTIFIER"',
        'secret_name = "projects/my-project/secrets/db"',
        "key = sha256_of_file1",
        'css = "sk-fading-circle-wrapper-large"',
        "token = self.tokens[2]",
        'api_key = "YOUR_API_KEY_1234567890"',
        'integrity="sha512-oJ0h3mTqP7C+QkX9vZzVbqYy1Q2l0pWn8eRr5TtYyUuIiOoPpAaSsDdFfGg=="',
        'commit = "9fceb02d0ae598e95dc970b74767f19372d61af8"',
        'uuid = "123e4567-e89b-12d3-a456-426614174000"',
        "eyJust a word. eyJanother",
        "basic understanding-of-the-1st-order",
        "import secrets, tokenize",
        "-----BEGIN CERTIFICATE-----",
        'password_field = "user.password"',
        'password.label = "Min. 8 signs"',
        "docker run -u 1000:1000 image",
        "psql -u postgres:postgres",
        "send -u http://localhost:8080/logs",
        "tool --token-file=/etc/shop/token --password-stdin",
        "<input type=password>text</input>",
        "https://[&lt;user&gt;[:&lt;password&gt;]@]host",
        "https://some-long-host-name-without-any-user.example.org/@scope/x",
        'const token: TokenKind = TokenKind.Identifier; "and a later string of 1 line"',
    ],
)
def test_what_only_speaks_of_secrets_is_none(line):
    assert found(line) == []


KEY = [
    "-----BEGIN RSA PRIVATE " + "KEY-----",
    *("MIIEpAIBAAKCAQEA7bq" + letter * 40 for letter in "aBcD"),
    "-----END RSA PRIVATE " + "KEY-----",
]


def test_the_lines_of_a_private_key_are_secrets_also_where_its_beginning_or_end_is_cut_off():
    assert found("\n".join(["x", *KEY, "y" * 30])) == KEY[1:-1]
    assert found("\n".join([*KEY[2:], "y" * 30])) == KEY[2:-1]
    assert found("\n".join(["x" * 30, *KEY[:3]])) == KEY[1:3]
    assert found('key = "' + "\\n".join(KEY) + '"') != []


BODY = [base64.b64encode(hashlib.sha384(bytes([at])).digest()).decode() for at in range(6)]


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("# ", ""), ("    ", ""), ('    "', '\\n"'), ("+", ""), ("  '", "' +"), ("// ", "")], ids=repr
)
def test_lines_of_a_keys_body_are_secrets_wherever_the_key_begins_and_ends(before, after):
    shown = [f"{before}{line}{after}" for line in BODY]
    for lines in (shown, shown[:2], [*shown[:3], f"{before}{BODY[3][:30]}{after}"], [f"{BODY[0][-40:]}{after}", *shown[1:4]]):
        text = "\n".join([*lines, "y = 2"])
        assert "".join(found(text)) == "".join(line.removeprefix(before).removesuffix(after) for line in lines)


def test_one_line_of_a_keys_body_alone_and_rows_of_digests_are_no_key():
    assert found(f"x\n{BODY[0]}\ny") == []
    assert found("\n".join(f'"{at:064x}",' for at in range(1, 9))) == []
    assert found("\n".join("A" * 64 for _ in range(9))) == []


def test_a_key_in_one_line_is_found_without_its_beginning_and_end():
    (body,) = found(BODY[0][-30:] + "\\n" + "\\n".join(BODY) + '\\n"')
    assert body == BODY[0][-30:] + "\\n" + "\\n".join(BODY) + "\\n"
    assert found(r"a = b\nc = d") == []


@pytest.mark.parametrize(
    "text",
    [
        f'API_TOKEN = (\n    "{RANDOM}"\n)\n',
        f'"token":\n    "{RANDOM}",\n',
        f"- name: API_TOKEN\n  value: {RANDOM}\n",
        f'- name: API_TOKEN\n  value: "{RANDOM}"\n',
        f'[{{"name": "API_TOKEN",\n  "value": "{RANDOM}"}}]\n',
        f"<key>ApiToken</key>\n<string>{RANDOM}</string>\n",
        f'const API_TOKEN: &str =\n    "{RANDOM}";\n',
        'password = (\n    "Sommer2024!"\n)\n',
    ],
)
def test_a_value_below_its_name_is_a_secret(text):
    (secret,) = found(text)
    assert secret in (RANDOM, "Sommer2024!")


def test_all_pieces_of_a_secret_in_several_lines_are_found():
    assert found(f'token = "{RANDOM}" \\\n    "{RANDOM[::-1]}"\n') == [RANDOM, RANDOM[::-1]]
    assert found(f'token = (\n    "{RANDOM}"\n    "{RANDOM[::-1]}"\n    "an end"\n)\n"{RANDOM}"') == [RANDOM, RANDOM[::-1]]


@pytest.mark.parametrize(
    "text", ["def token(\n    self, a='x1'):\n", "if token ==\n  'identifier':\n", "token:\n    value: str\n", "name: token\nvalue: 12\n"]
)
def test_what_stands_below_a_name_need_not_be_a_secret(text):
    assert found(text) == []


@pytest.mark.parametrize("n", [32, 300, 401, 1_200, 3_900])
@pytest.mark.parametrize("line", ['API_TOKEN = "{}"', 'password = "{}"', "API_TOKEN={}", '"Authorization": "Bearer {}"', "x --token={} y"])
def test_a_long_secret_is_hidden_as_a_whole_and_a_longer_one_at_its_beginning(line, n):
    secret = (RANDOM * 200)[:n]
    assert found(line.format(secret)) == [secret]


def test_of_a_secret_too_long_for_one_most_is_hidden():
    (secret,) = found(f'token = "{RANDOM * 200}"')
    assert len(secret) >= 4_000


def test_one_that_is_being_typed_ends_at_the_cursor():
    before, after = f'connect(token="{RANDOM}', ', user="x")\n'
    assert found(before + after) == []
    assert [(before + after)[slice(*span)] for span in shapes.around(before, after)] == [RANDOM]


@pytest.mark.parametrize("word", ["a" * 60 + "1x1x", "aB" * 90 + "-1x1x", "a_" * 90 + "1x1x"])
def test_a_long_word_is_judged_at_once(word):
    began = time.perf_counter()
    found(f'token = "{word}"')
    assert time.perf_counter() - began < 1


def test_spans_are_in_order_apart_and_within_a_line():
    text = "\n".join("".join(shape.example) for shape in shapes.shipped()) + "\n" + "\n".join(KEY)
    spans = shapes.find(text)
    assert all(first < last <= following for (first, last), (following, _) in itertools.pairwise(spans))
    assert all("\n" not in text[first:last] for first, last in spans)


HOSTILE = [
    "eyJ", "eyJ.eyJ.", "://:", "password", "password=", "password: ", "-----BEGIN PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----\n", "A", "sk-", "sk-a-b-c-",
    "token=a1", "bearer ", "bearer a1b2", "xoxb-", "'\"", "&sig=a1%", "password='a1", "pwd=a1;", "AccountKey=", "1", "password\t\t:\t", "token:a:a:a", "secret[", "token a b c ", "token: a : b", "name: token\n", "token = (\n", "token='a1b2'\\\n", "--token ", "-u a:", "a1B2" * 16 + "\n", "a1B2" * 16 + "\\n", "token=token=", "<token>", "\ud800", "\0",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_follows_the_length_whatever_the_text_says(piece):
    def took(n):
        text = piece * (n // len(piece))
        began = time.perf_counter()
        shapes.find(text)
        return time.perf_counter() - began

    took(20_000)
    short, long = min(took(20_000) for _ in range(3)), took(160_000)
    assert long < 40 * short + 0.5
