"""Each order has one invoice, although an instance dies in the middle of a transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from orders import INVOICES, ORDERS, Processor

BOOTSTRAP = os.environ["BOOTSTRAP"]
NUMBER = 40


class PowerCut(Exception):
    pass


def dying(after: int) -> Callable[[bytes], bytes]:
    """Makes some invoices, then none."""
    made = 0

    def invoice(order: bytes) -> bytes:
        nonlocal made
        made += 1
        if made > after:
            raise PowerCut
        return b"invoice of " + order

    return invoice


@pytest.fixture(autouse=True)
def topics() -> None:
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    made = admin.create_topics([NewTopic(name, 3, 1) for name in (ORDERS, INVOICES)])
    for future in made.values():
        future.result(30)


def work(processor: Processor, orders: int) -> None:
    """Lets an instance process so many orders, or as many as there are within a minute."""
    end, done = time.monotonic() + 60, 0
    while done < orders and time.monotonic() < end:
        done += processor.step()


def invoices() -> list[bytes]:
    """What a read_committed consumer gets within the patience of this test."""
    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([INVOICES])
    found: list[bytes] = []
    end = time.monotonic() + 60
    quiet = 0
    while quiet < 3 and time.monotonic() < end:
        read = [one.value() for one in consumer.consume(100, timeout=1.0) if not one.error()]
        found += read
        quiet = 0 if read or len(found) < NUMBER else quiet + 1
    consumer.close()
    return found


def test_each_order_has_one_invoice() -> None:
    shop = Producer({"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True})
    wanted = [f"order {number}".encode() for number in range(NUMBER)]
    for order in wanted:
        shop.produce(ORDERS, order, order)
    shop.flush(30)

    first = Processor(BOOTSTRAP, dying(after=12))
    with pytest.raises(PowerCut):
        work(first, NUMBER)
    first.close()

    second = Processor(BOOTSTRAP, lambda order: b"invoice of " + order)
    work(second, NUMBER - 10)
    second.close()
    assert sorted(invoices()) == sorted(b"invoice of " + order for order in wanted)
