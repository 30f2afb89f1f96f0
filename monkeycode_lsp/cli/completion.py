"""`monkeycode completion`: the script that completes our commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_WHERE = {
    "bash": 'Add to ~/.bashrc:  eval "$(monkeycode completion bash)"',
    "zsh": 'Add to ~/.zshrc:  eval "$(monkeycode completion zsh)"',
    "fish": "Run once:  monkeycode completion fish > ~/.config/fish/completions/monkeycode.fish",
}


@click.command(epilog="\b\n" + "\n".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(list(_WHERE)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands in SHELL."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"This version of click has no completion for {shell}.")
    root = ctx.find_root().command
    name = root.name or "monkeycode"
    click.echo(kind(root, {}, name, f"_{name.upper()}_COMPLETE").source())
