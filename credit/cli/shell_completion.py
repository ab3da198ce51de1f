"""`credit completion`: the script that teaches a shell to complete commands, options and method names."""

from __future__ import annotations

import click

from credit.cli.shared.commands import Command

__all__ = ["completion"]


@click.command(
    cls=Command,
    short_help="Print the completion script of a shell.",
    examples="""
    credit completion bash > ~/.local/share/bash-completion/completions/credit
    credit completion zsh > "${fpath[1]}/_credit"
    credit completion fish > ~/.config/fish/completions/credit.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the completion script of a shell, which completes commands, options and names of methods."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is None:
        raise click.BadParameter(f"no completion for {shell}")
    click.echo(script(ctx.find_root().command, {}, "credit", "_CREDIT_COMPLETE").source())
