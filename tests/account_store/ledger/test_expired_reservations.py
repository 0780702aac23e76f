"""Reservations that expire go back to where they were taken from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import StaticPool, create_engine, select

from account_store.ledger.reservations import expire_reservations
from account_store.schema import credit_day, credit_month, credit_reservation, replay
from tests.account_store.ledger.ledger_books import DAY, NOW, UNIX

# --- reservations that expire ---


held_rows = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.sampled_from(["2026-10-31", DAY]), st.integers(1, 9), st.integers(899, 901)),
    max_size=6,
)


@settings(max_examples=30, deadline=None)
@given(held_rows)
def test_expired_reservations_go_back_to_their_month_day_and_key(rows: list[tuple[int, int, str, int, int]]) -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    for table in (credit_month, credit_day, credit_reservation, replay):
        table.create(engine, checkfirst=False)
    days = {(account, day, key): (100, 10) for account in (1, 2) for day in ("2026-10-31", DAY) for key in (1, 2)}
    months = {(account, day[:7]): 500 for account, day, _ in days}
    with engine.begin() as connection:
        connection.execute(
            credit_month.insert(), [{"account_id": a, "month": m, "used": used, "allowed": 900} for (a, m), used in months.items()]
        )
        names = ("account_id", "day", "key_id", "credits", "requests")
        connection.execute(credit_day.insert(), [dict(zip(names, (*place, *counts), strict=True)) for place, counts in days.items()])
        for number, (account, key, day, credits_, age) in enumerate(rows):
            row = {"reservation_id": str(number), "account_id": account, "key_id": key, "day": day, "credits": credits_}
            connection.execute(credit_reservation.insert(), row | {"created_unix": UNIX - age})
        for number in (-1, 0, 1):
            key_row = {"account_id": 1, "idempotency_key": str(number), "request_hash": "", "granted": 1, "day": DAY}
            connection.execute(replay.insert(), key_row | {"expires_unix": UNIX + number})
    expired = [row for row in rows if row[4] >= 900]
    assert expire_reservations(engine, NOW) == len(expired)
    for account, key, day, credits_, _ in expired:
        months[account, day[:7]] -= credits_
        counts = days[account, day, key]
        days[account, day, key] = counts[0] - credits_, counts[1] - 1
    with engine.connect() as connection:
        columns = (credit_day.c.account_id, credit_day.c.day, credit_day.c.key_id, credit_day.c.credits, credit_day.c.requests)
        assert {tuple(row[:3]): tuple(row[3:]) for row in connection.execute(select(*columns))} == days
        used = connection.execute(select(credit_month.c.account_id, credit_month.c.month, credit_month.c.used))
        assert {(row[0], row[1]): row[2] for row in used} == months
        left = connection.execute(select(credit_reservation.c.reservation_id)).scalars().all()
        assert sorted(left) == [str(number) for number, row in enumerate(rows) if row[4] < 900]
        assert connection.execute(select(replay.c.idempotency_key)).scalars().all() == ["1"]
