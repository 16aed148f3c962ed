"""Counts what is reserved."""

from collections import Counter

from karmada_scheduler.framework import SUCCESS, BindContext, BindingKey, Result
from tools.simulation import plugin_kit


class Books:
    """Count decisions from Reserve to Unreserve or PostBind."""

    name = "Books"

    def __init__(self) -> None:
        self.book: Counter[BindingKey] = plugin_kit.new_book()

    def reserve(self, context: BindContext, /) -> Result:
        key = context.binding.key
        if self.book[key]:
            plugin_kit.report(f"{key.display} is reserved twice")
        self.book[key] += 1
        return SUCCESS

    def unreserve(self, context: BindContext, /) -> None:
        self.book.pop(context.binding.key, None)

    async def post_bind(self, context: BindContext, /) -> None:
        if not self.book.pop(context.binding.key, None):
            plugin_kit.report(f"{context.binding.key.display} is bound and not reserved")
