"""OASST1 (Köpf et al. 2023, arXiv 2304.07327): conversations in which people wrote both sides."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from userturn.datasets.items import Item, Row
from userturn.messages import Message

DATASET = "oasst1"


def items(rows: Iterable[Row], _seed: int) -> Iterator[tuple[Row, Item]]:
    """Reads the hub's message rows, or rows ``{"messages", "next_user"}`` with an optional ``id``.

    Of a message tree in English the root is the query; of the assistant's answers to it the best ranked one that a
    person replied to is taken, and of the replies to that one the best ranked. Deleted and synthetic messages, and
    those that reviewers rejected, are left out with all below them; a tree without such a reply gives no item.

    Args:
        rows: the rows in file order, all of one form.
        _seed: not needed.

    Yields:
        Items ``oasst1-<tree or id>`` without a reference: the query, and in ``meta`` the ``human_answer`` that the
        person saw and the ``human_followup`` that they wrote next (also as ``next_user``).

    Raises:
        DatasetError: naming the line and what was expected.
    """
    source = iter(rows)
    first = next(source, None)
    if first is None:
        return
    read = _conversations if first.has("messages") else _trees
    yield from read(chain([first], source))


def _item(native: str, messages: list[Message], answer: str, followup: str, index: int) -> Item:
    return {
        "item": f"{DATASET}-{native}",
        "messages": messages,
        "reference": None,
        "meta": {
            "human_answer": answer,
            "human_followup": followup,
            "next_user": followup,
            "source_index": index,
        },
    }


def _conversations(rows: Iterable[Row]) -> Iterator[tuple[Row, Item]]:
    for row in rows:
        *messages, answer = row.conversation("messages", last="assistant")
        if not messages or messages[-1]["role"] != "user":
            raise row.fail("a user turn before the last message of 'messages'", [one["role"] for one in messages])
        native = row.text("id") if row.has("id") else f"{row.index:04d}"
        yield row, _item(native, messages, answer["content"], row.text("next_user"), row.index)


def _trees(rows: Iterable[Row]) -> Iterator[tuple[Row, Item]]:
    roots: list[Row] = []
    children: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.optional("deleted") or row.optional("synthetic") or row.optional("review_result") is False:
            continue
        if row.has("parent_id"):
            children[row.text("parent_id")].append(row)
        elif row.text("role") == "prompter" and row.text("lang") == "en":
            roots.append(row)
    for root in roots:
        found = _replied(root, children)
        if found is not None:
            answer, followup = found
            query: Message = {"role": "user", "content": root.text("text")}
            yield root, _item(root.text("message_tree_id"), [query], answer, followup, root.index)


def _replied(root: Row, children: dict[str, list[Row]]) -> tuple[str, str] | None:
    """The best ranked answer with a reply, and the best ranked reply to it."""
    for answer in sorted(children[root.text("message_id")], key=_rank):
        replies = sorted(children[answer.text("message_id")], key=_rank)
        if replies:
            return answer.text("text"), replies[0].text("text")
    return None


def _rank(row: Row) -> tuple[float, str]:
    rank = row.optional("rank")
    return (float("inf") if rank is None else float(rank)), row.text("message_id")
