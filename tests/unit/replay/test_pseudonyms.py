"""Pseudonyms keep what rules ask of a name, and nothing else of it."""

from __future__ import annotations

import pickle

import pytest

from pipeline.replay.application import application
from pipeline.replay.pseudonyms import Pseudonyms
from pipeline.wire.log_dir import partition_for

KEY = b"a key of the tests, long enough"
UUID = "123e4567-e89b-42d3-a456-426614174000"
IDS = (
    "payments-tx-7", f"shop-{UUID}-1", "shop-0_1", "shop-topology__0_1", "connect-cluster-lake",
    f"pre-{'a' * 32}-5", "pre-3-17", f"x.{UUID}", f"x-{UUID}", f"x_{UUID}.4", "plain",
    "order-99887766", "é-😀-3", "a-b_c.9", "id\nof two lines-1", "x" * 32_000,
)  # fmt: skip


@pytest.mark.parametrize("text", IDS)
@pytest.mark.parametrize("counts", [(), (50,), (4, 50)])
def test_rules_see_the_same(text: str, counts: tuple[int, ...]) -> None:
    hidden = Pseudonyms(KEY, None, counts).transactional_id(text)
    before, after = application(text), application(hidden)
    assert before.framework == after.framework
    assert (before.name == text) == (after.name == hidden)
    for count in counts:
        assert partition_for(text, count) == partition_for(hidden, count)
    words = [word for word in text.replace("_", "-").split("-") if word.isalpha() and len(word) > 3]
    assert [word for word in words if word in hidden and word not in ("connect", "cluster")] == []
    assert hidden.isascii()
    assert hidden.isprintable()
    assert len(hidden) < 120


def test_the_application_has_one_name() -> None:
    names = Pseudonyms(KEY, r"prod-(?P<application>[a-z]+)-w.*", (50,))
    mine = [names.transactional_id(one) for one in ("prod-shop-wa", "shop-0_1", f"shop-{UUID}-2")]
    assert {application(one).name for one in mine} == {names.name("shop")}
    assert len(set(mine)) == 3


def test_one_name_one_pseudonym() -> None:
    names, again = Pseudonyms(KEY), pickle.loads(pickle.dumps(Pseudonyms(KEY)))
    assert names.name("g") == again.name("g") != names.name("h")
    assert names.name("g") != Pseudonyms(KEY + b"!").name("g")
    many = {names.transactional_id(f"app-{number}") for number in range(20_000)}
    assert len(many) == 20_000
    assert names.name("") == names.transactional_id("") == ""


def test_folders_may_name_hosts() -> None:
    names = Pseudonyms(KEY)
    log = names.path("kafka-host-3/orders-0/00000000000000000000.log")
    assert log.endswith("/orders-0/00000000000000000000.log")
    assert "host" not in log
    assert names.partition_path("kafka-host-3/orders-0") == log.rpartition("/")[0]
    assert names.path("kafka-host-3") == log.partition("/")[0]
    checkpoint = names.path("copy.tar!host-3/replication-offset-checkpoint")
    assert checkpoint.endswith("/replication-offset-checkpoint")
    assert "host" not in checkpoint
    assert names.path(".") == "."


def test_topics_stay_but_for_those_named_after_a_group() -> None:
    names = Pseudonyms(KEY)
    assert names.topic("orders") == "orders"
    assert names.topic("shop-store-changelog") == f"{names.name('shop-store')}-changelog"
    join = "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic"
    assert names.topic(f"shop-{join}") == f"{names.name('shop')}-{join}"
    assert names.partitions("orders\x000\x01shop-repartition\x001") == "\x01".join(
        sorted(("orders\x000", f"{names.name('shop')}-repartition\x001"))
    )
    assert names.partitions("") == ""


def test_ids_stay_at_home_in_several_sizes_of_the_coordinators_topic() -> None:
    names = Pseudonyms(KEY, counts=(50, 51, 60))
    for number in range(20):
        text = f"app-{number}"
        hidden = names.transactional_id(text)
        assert [partition_for(hidden, count) for count in names.counts] == [
            partition_for(text, count) for count in names.counts
        ]


def test_numbers_depend_on_the_key() -> None:
    one, other = Pseudonyms(KEY), Pseudonyms(b"another key of the tests")
    assert one.number(5) == one.number(5) != other.number(5)
    assert -(2**63) <= one.number(5) < 2**63
