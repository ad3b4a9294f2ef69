"""The class of all commands."""

from __future__ import annotations

from collections import Counter

import click


class Command(click.Command):
    """A command that refuses an option of one value that is given twice: the last would count."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: An option that has one value is there twice.
        """
        _, _, order = self.make_parser(ctx).parse_args([*args])
        for option, count in Counter(order).items():
            if not isinstance(option, click.Option) or option.multiple or option.count:
                continue
            if count > 1 and not option.is_flag:
                raise click.UsageError(f"{option.opts[0]} is given {count} times", ctx)
            sides = [next((one for one in side if one in args), "")
                     for side in (option.opts, option.secondary_opts)]  # fmt: skip
            if count > 1 and all(sides):
                raise click.UsageError(" and ".join(sides) + " exclude each other", ctx)
        return super().parse_args(ctx, args)
