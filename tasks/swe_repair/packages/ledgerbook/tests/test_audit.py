from ledgerbook import Ledger, parse_journal
from ledgerbook.audit import Audit

JOURNAL = """\
2024-01-01 a
  assets:cash  -5
  misc:x

2024-01-01 a
  assets:cash  -5
  misc:x

2024-01-02 big
  assets:bank  2,000
  income:job
  assets:cash  0
"""


def test_titles_keep_their_order():
    assert Audit().titles() == ["accounts", "amounts", "cash", "duplicates"]


def test_problems_come_in_the_order_of_the_checks():
    assert Audit().run(Ledger(parse_journal(JOURNAL))) == [
        "accounts: unknown kind of account misc:x",
        "amounts: 2024-01-02 assets:bank exceeds the limit",
        "amounts: 2024-01-02 income:job exceeds the limit",
        "amounts: 2024-01-02 assets:cash is booked with 0",
        "cash: negative on 2024-01-01",
        "duplicates: 2024-01-01 a",
    ]


def test_stop_at():
    problems = Audit().run(Ledger(parse_journal(JOURNAL)), stop_at=2)
    assert problems[0].startswith("accounts")
    assert len(problems) == 2


def test_higher_limit():
    problems = Audit(limit=300_000).run(Ledger(parse_journal(JOURNAL)))
    assert not any("exceeds" in problem for problem in problems)
