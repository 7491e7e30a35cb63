import pytest
from ledgerbook import Entry, Ledger, Posting, balance_table, income_statement, monthly_totals, parse_journal

JOURNAL = """\
2024-01-05 rent
  expenses:rent  500
  assets:bank

2024-01-01 salary
  assets:bank  2,000
  income:job

2024-03-02 food #weekly
  expenses:food:market  40.10
  expenses:food:cafe  9.90
  assets:cash

2024-03-02 withdrawal
  assets:cash  100
  assets:bank
"""


@pytest.fixture
def ledger():
    return Ledger(parse_journal(JOURNAL))


def test_entries_are_sorted_by_date(ledger):
    assert [entry.description for entry in ledger.entries] == ["salary", "rent", "food", "withdrawal"]


def test_unbalanced_entries_are_refused(ledger):
    with pytest.raises(ValueError, match="off by 5"):
        ledger.add(Entry("2024-01-01", "bad", [Posting("a", 5)]))
    assert len(ledger) == 4


def test_between_excludes_the_end(ledger):
    assert [entry.description for entry in ledger.between("2024-01-05", "2024-03-02")] == ["rent"]


def test_balance_with_sub_accounts(ledger):
    assert ledger.balance("assets") == 145000
    assert ledger.balance("assets:bank", end="2024-01-05") == 200000


def test_trial_balance_sums_to_zero(ledger):
    balances = ledger.trial_balance()
    assert sum(balances.values()) == 0
    assert balances["assets:cash"] == 5000
    assert list(balances) == sorted(balances)


def test_zero_balances_are_left_out():
    text = "2024-01-01 a\n  x  1\n  y\n\n2024-01-02 b\n  y  1\n  z\n"
    assert Ledger(parse_journal(text)).trial_balance() == {"x": 100, "z": -100}


def test_register_has_a_running_balance(ledger):
    rows = ledger.register("assets:cash")
    assert rows == [("2024-03-02", "food", -5000, -5000), ("2024-03-02", "withdrawal", 10000, 5000)]


def test_accounts_and_tags(ledger):
    assert ledger.accounts()[:2] == ["assets:bank", "assets:cash"]
    assert [entry.description for entry in ledger.tagged("weekly")] == ["food"]


def test_closing_moves_the_result_to_equity(ledger):
    entry = ledger.close_period("2024-04-01")
    assert entry.total == 0
    assert ledger.balance("income") == 0
    assert ledger.balance("expenses") == 0
    assert ledger.balance("equity") == -145000
    assert ledger.close_period("2024-04-02") is None


def test_income_statement_ignores_the_closing(ledger):
    ledger.close_period("2024-02-01")
    statement = income_statement(ledger, "2024-01-01", "2025-01-01")
    assert statement == {"income": 200000, "expenses": 55000, "profit": 145000}


def test_balance_table(ledger):
    lines = balance_table(ledger, depth=1).splitlines()
    assert lines[0] == "assets     1,450.00"
    assert lines[-2] == "-" * 19
    assert lines[-1] == "total          0.00"


def test_balance_table_indents_levels(ledger):
    assert "    market      40.10" in balance_table(ledger)


def test_monthly_totals_fill_gaps(ledger):
    assert monthly_totals(ledger, "expenses") == {"2024-01": 50000, "2024-02": 0, "2024-03": 5000}
    assert monthly_totals(ledger, "nothing") == {}
