import pytest
from ledgerbook.journal import Entry, JournalError, Posting, parse_journal, valid_date

TEXT = """\
; opening
2024-03-01 groceries #food #weekly
  expenses:food  12.50
  assets:bank

2024-02-29 pay day
  assets:bank  1,000.00
  income:job  -900.00
  income:bonus  -100.00
"""


def test_entries_keep_the_order_of_the_text():
    assert [entry.description for entry in parse_journal(TEXT)] == ["groceries", "pay day"]


def test_missing_amount_balances_the_entry():
    entry = parse_journal(TEXT)[0]
    assert entry.postings == [Posting("expenses:food", 1250), Posting("assets:bank", -1250)]


def test_tags_are_taken_from_the_head():
    assert parse_journal(TEXT)[0].tags == {"food", "weekly"}


def test_entries_need_no_blank_line_between():
    text = "2024-01-01 a\n  x  1\n  y\n2024-01-02 b\n  x  2\n  y\n"
    assert [entry.amount_on("x") for entry in parse_journal(text)] == [100, 200]


def test_unbalanced_entry_names_its_line():
    with pytest.raises(JournalError) as caught:
        parse_journal("\n2024-01-01 a\n  x  1\n  y  2\n")
    assert caught.value.line == 2
    assert "3.00" in caught.value.reason


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  x  1\n", 1),
        ("2024-13-01 a\n  x  1\n  y\n", 1),
        ("2024-01-01\n  x  1\n  y\n", 1),
        ("2024-01-01 a\n  x  1z\n  y\n", 2),
        ("2024-01-01 a\n  x\n  y\n", 1),
        ("2024-01-01 a\n  x  0\n", 1),
    ],
)
def test_bad_journals(text, line):
    with pytest.raises(JournalError) as caught:
        parse_journal(text)
    assert caught.value.line == line


def test_dates():
    assert valid_date("2024-02-29")
    assert valid_date("2000-02-29")
    assert not valid_date("1900-02-29")
    assert not valid_date("2023-04-31")
    assert not valid_date("2024-1-1")
    assert not valid_date("2024-00-10")


def test_amount_on_includes_sub_accounts():
    entry = parse_journal(TEXT)[1]
    assert entry.amount_on("income") == -100000
    assert entry.amount_on("inc") == 0


def test_accounts_are_listed_once():
    entry = Entry("2024-01-01", "x", [Posting("a", 1), Posting("b", -2), Posting("a", 1)])
    assert entry.accounts() == ["a", "b"]


def test_rendered_entry_parses_again():
    entry = parse_journal(TEXT)[1]
    text = entry.render()
    assert text.splitlines()[1] == "  assets:bank   1,000.00"
    assert parse_journal(text)[0].postings == entry.postings
