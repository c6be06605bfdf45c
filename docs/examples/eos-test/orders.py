"""Reads orders, writes an invoice for each; input offsets and output are one transaction."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, Producer

ORDERS, INVOICES = "orders", "invoices"


class Processor:
    """One instance of the application.

    Args:
        bootstrap: `host:port` of a broker.
        invoice: Makes an invoice of an order.
    """

    def __init__(self, bootstrap: str, invoice: Callable[[bytes], bytes]) -> None:
        self._invoice = invoice
        self._orders = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "invoicing",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._orders.subscribe([ORDERS])
        self._invoices = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": "invoicing-0"}
        )
        self._invoices.init_transactions()

    def step(self, at_most: int = 5) -> int:
        """One transaction.

        Returns:
            Number of orders in it; 0 when there were none.
        """
        read = [one for one in self._orders.consume(at_most, timeout=1.0) if not one.error()]
        if not read:
            return 0
        self._invoices.begin_transaction()
        for order in read:
            self._invoices.produce(INVOICES, self._invoice(order.value()), order.key())
        self._invoices.send_offsets_to_transaction(
            self._orders.position(self._orders.assignment()),
            self._orders.consumer_group_metadata(),
        )
        self._invoices.commit_transaction()
        return len(read)

    def close(self) -> None:
        self._orders.close()
