"""`python -m credit` and the `credit` command."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line on `sys.argv`; leaves by `SystemExit` with the codes of `credit.cli`."""
    from credit.cli import cli

    cli()


if __name__ == "__main__":
    main()
