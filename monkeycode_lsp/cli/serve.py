"""`monkeycode serve`: the server, in front of an editor's pipes or a port of this machine."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monkeycode_lsp import transport
from monkeycode_lsp.cli import options
from monkeycode_lsp.cli.options import Chosen
from monkeycode_lsp.errors import ConfigError, MonkeyCodeError

if TYPE_CHECKING:
    from monkeycode_lsp.server import Server

HOST = "127.0.0.1"
_LOOPBACK = frozenset({HOST, "::1", "localhost"})
Address = tuple[str, int]
Listen = Callable[..., Awaitable[None]]


def parse_address(text: str) -> Address:
    """`8080`, `0.0.0.0:8080` or `[::1]:8080` → host and port."""
    host, colon, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535 or (colon and not host):  # noqa: PLR2004 - the highest port
        raise click.BadParameter(f"{text!r} is not [HOST:]PORT, such as 8080 or {HOST}:8080.")
    return host.strip("[]") or HOST, int(port)


def _address(_ctx: click.Context, _option: click.Parameter, value: str | None) -> Address | None:
    return None if value is None else parse_address(value)


@click.command()
@click.option("--stdio", is_flag=True, help="Over standard input and output (the default).")
@click.option("--tcp", callback=_address, metavar="[HOST:]PORT", help="Over TCP, for one editor; port 0 takes a free one.")
@click.option("--ws", callback=_address, metavar="[HOST:]PORT", help="Over WebSocket, for one editor.")
@click.option("--log-level", type=click.Choice(options.LOG_LEVELS, case_sensitive=False), help="Also by MONKEYCODE_LOG_LEVEL.")
@options.engine_option
@options.setting_option
@click.option("--state", type=click.Path(file_okay=False, path_type=Path), hidden=True, help="For outcomes, in the place of the user's.")
@click.option("--clientProcessId", "client_pid", type=int, hidden=True)
@click.pass_context
def serve(
    ctx: click.Context,
    *,
    stdio: bool,
    tcp: Address | None,
    ws: Address | None,
    log_level: str | None,
    engine: str | None,
    settings: tuple[str, ...],
    state: Path | None,
    client_pid: int | None,
) -> None:
    """Serve an editor.  It ends when the editor goes."""
    del client_pid  # some editors' libraries pass it; the end of our input tells the same, sooner
    if sum((stdio, tcp is not None, ws is not None)) > 1:
        raise click.UsageError("Choose one of --stdio, --tcp and --ws.")
    tree = options.overrides(Chosen(engine=engine, settings=settings))
    if log_level is not None:
        tree["logLevel"] = log_level.lower()
    if tcp is None and ws is None:
        ctx.exit(_serve_pipes(tree, state))
    elif tcp is not None:
        ctx.exit(_serve_port(tree, tcp, transport.serve_tcp, state))
    elif ws is not None:
        if importlib.util.find_spec("websockets") is None:
            from monkeycode_lsp.models import package_client  # noqa: PLC0415 - only to say this

            raise ConfigError("The WebSocket transport is not installed.", remedy=f"Install it: {package_client.install_line('ws')}")
        ctx.exit(_serve_port(tree, ws, transport.serve_websocket, state))


def _serve_pipes(tree: dict[str, Any], state: Path | None) -> int:
    stdout = transport.claim_stdout()  # before the imports: whatever prints while it is imported must not reach the editor
    if sys.stdin.isatty():
        click.echo("This waits for an editor to speak LSP on standard input; Ctrl-C ends it. See `monkeycode try`.", err=True)
    from monkeycode_lsp import app  # noqa: PLC0415 - see above; and it is slow

    app.start_logging(_log_level(tree))
    return app.serve_stdio(tree, stdout=stdout, state=state)


def _serve_port(tree: dict[str, Any], address: Address, listen: Listen, state: Path | None) -> int:
    from monkeycode_lsp import app  # noqa: PLC0415 - slow

    host, port = address
    app.start_logging(_log_level(tree))
    if host not in _LOOPBACK:
        click.echo(f"Anybody who reaches {host} can connect: there is no password.", err=True)

    def listening(actual: int) -> None:
        click.echo(f"Listening on {f'[{host}]' if ':' in host else host}:{actual}", err=True)

    async def serve_one(server: Server) -> None:
        try:
            await listen(server, host, port, server.ended, listening)
        except OSError as exc:
            raise MonkeyCodeError(
                f"Cannot listen on {host}:{port}: {exc.strerror or exc}.", remedy="Choose another port; 0 takes a free one."
            ) from exc

    return app.run(app.make_server(tree, state=state), serve_one)


def _log_level(tree: dict[str, Any]) -> str:
    return str(tree.get("logLevel") or os.environ.get("MONKEYCODE_LOG_LEVEL") or "info")
