"""Where secrets stand in a text, and where none do."""

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


def test_spans_are_in_order_apart_and_within_a_line():
    text = "\n".join("".join(shape.example) for shape in shapes.shipped()) + "\n" + "\n".join(KEY)
    spans = shapes.find(text)
    assert all(first < last <= following for (first, last), (following, _) in itertools.pairwise(spans))
    assert all("\n" not in text[first:last] for first, last in spans)


HOSTILE = [
    "eyJ", "eyJ.eyJ.", "://:", "password", "password=", "password: ", "-----BEGIN PRIVATE " + "KEY-----", "-----END PRIVATE " + "KEY-----\n", "A", "sk-", "sk-a-b-c-",
    "token=a1", "bearer ", "bearer a1b2", "xoxb-", "'\"", "&sig=a1%", "password='a1", "pwd=a1;", "AccountKey=", "1", "password\t\t:\t", "token:a:a:a", "secret[", "\ud800", "\0",
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
