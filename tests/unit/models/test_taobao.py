"""Taobao's formats: the generators write what the checkers take, and each mistake has its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DataError
from workbench.models.data.table_format import Column, TableFormat
from workbench.models.data.taobao import (
    DSSM_ITEM,
    DSSM_TABLE,
    DSSM_TAGS,
    DSSM_USER,
    LONGEST_HISTORY,
    SEQUENCE_NEGATIVE_TABLE,
    SEQUENCE_TABLE,
    check_dssm,
    check_sequences,
    generate_dssm,
    generate_sequences,
)
from workbench.models.data.text_table import check_table

_TEXTS = "0,0,8,5,2,3,,3,0,,4281|6300,,81,6,7,9,,170.0,430548_1007"
ADVERTISEMENT = dict(zip((c.name for c in DSSM_TABLE.columns), _TEXTS.split(","), strict=True))
SEQUENCE = {
    "CLICKED": "1",
    "UID": "u",
    "ITEM": "i3",
    "CATEGORY": "c1",
    "HISTORY_ITEM": "i1\x02i2",
    "HISTORY_CATEGORY": "c1\x02c2",
    "NOCLK_HISTORY_ITEM": "i8\x02i9",
    "NOCLK_HISTORY_CATEGORY": "c8\x02c9",
}


def line(layout: TableFormat, good: dict[str, str], **changes: str) -> bytes:
    fields = {**good, **changes}
    texts = [fields[column.name] for column in layout.columns]
    return layout.separator.decode().join(texts).encode()


def advertisement(**changes: str) -> bytes:
    return line(DSSM_TABLE, ADVERTISEMENT, **changes)


def sequence(**changes: str) -> bytes:
    return line(SEQUENCE_NEGATIVE_TABLE, SEQUENCE, **changes)


@pytest.fixture
def log(tmp_path):
    """Writes lines as a log and gives its path."""

    def write(*lines: bytes, end: bytes = b"\n") -> Path:
        path = tmp_path / "log.txt"
        path.write_bytes(end.join(lines) + end)
        return path

    return write


def refusal(check, path) -> str:
    with pytest.raises(DataError) as caught:
        check(path)
    message = str(caught.value)
    assert "\n" not in message and "\x02" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def columns(path: Path, layout: TableFormat) -> dict[str, list[str]]:
    rows = [row.split(layout.separator) for row in path.read_bytes().splitlines()]
    names = [column.name for column in layout.columns]
    return {
        name: [field.decode() for field in fields]
        for name, fields in zip(names, zip(*rows, strict=True), strict=True)
    }


def auc(label: np.ndarray, score: np.ndarray) -> float:
    """How often a click has the higher score; ties count half."""
    order = np.sort(score)
    rank = (np.searchsorted(order, score, "left") + np.searchsorted(order, score, "right")) / 2
    clicks = label.sum()
    return (rank[label].sum() - clicks**2 / 2) / (clicks * (len(label) - clicks))


def test_the_columns_of_an_advertisement_are_in_the_published_order():
    assert ",".join(column.name for column in DSSM_TABLE.columns) == (
        "clk,buy,user_id,cms_segid,cms_group_id,age_level,pvalue_level,shopping_level,occupation,"
        "new_user_class_level,tag_category_list,tag_brand_list,adgroup_id,cate_id,campaign_id,"
        "customer,brand,price,pid"
    )
    assert set(DSSM_TAGS) < set(DSSM_USER) and not set(DSSM_USER) & set(DSSM_ITEM)
    assert (len(DSSM_USER), len(DSSM_ITEM)) == (10, 7)


def test_good_rows_are_counted(log):
    path = log(advertisement(), advertisement(clk="1", tag_category_list="", tag_brand_list="3"))
    checked = check_dssm(path)
    assert (checked.rows, checked.more, checked.layout) == (2, False, DSSM_TABLE)
    path = log(sequence(), sequence())
    assert check_sequences(path, rows=1).more


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lists_may_stand_at_the_end_of_a_line(log, end):
    path = log(sequence(), sequence(HISTORY_ITEM="a\x02b"), end=end)
    assert check_sequences(path).rows == 2
    six = log(*[line(SEQUENCE_TABLE, SEQUENCE)] * 3, end=end)
    assert check_sequences(six, negatives=False).layout is SEQUENCE_TABLE


def test_a_missing_column_is_counted(log):
    assert refusal(check_dssm, log(advertisement(), b"1,2,3")) == (
        ", row 2: 3 columns; expected 19 (clk, buy, user_id to tag_brand_list, adgroup_id to pid) "
        "separated by ','"
    )
    assert refusal(check_sequences, log(line(SEQUENCE_TABLE, SEQUENCE))) == (
        ", row 1: 6 columns; expected 8 (CLICKED, UID, ITEM, CATEGORY, HISTORY_ITEM, "
        "HISTORY_CATEGORY, NOCLK_HISTORY_ITEM, NOCLK_HISTORY_CATEGORY) separated by tabs"
    )


@pytest.mark.parametrize("name", ["clk", "buy"])
def test_both_labels_are_0_or_1(log, name):
    assert refusal(check_dssm, log(advertisement(), advertisement(**{name: "2"}))) == (
        f", row 2, column {name}: '2' is no label; expected 0 or 1"
    )


def test_a_header_gets_a_hint(log):
    header = ",".join(column.name for column in DSSM_TABLE.columns).encode()
    assert refusal(check_dssm, log(header, advertisement())).endswith(
        "if row 1 holds the names of the columns, remove it"
    )


@pytest.mark.parametrize(
    ("value", "position", "count"), [("|3", 1, 2), ("3|", 2, 2), ("3||4", 2, 3), ("|", 1, 2)]
)
@pytest.mark.parametrize("name", DSSM_TAGS)
def test_an_empty_value_of_a_list_is_refused(log, name, value, position, count):
    path = log(advertisement(), advertisement(), advertisement(**{name: value}))
    assert refusal(check_dssm, path) == (
        f", row 3, column {name}: value {position} of {count} is empty; expected values joined by "
        "'|', none of them empty"
    )


def test_a_joiner_at_the_very_ends_of_a_block_is_seen(log):
    assert ", row 1, column NOCLK_HISTORY_CATEGORY: value 2 of 2 is empty" in refusal(
        check_sequences, log(sequence(NOCLK_HISTORY_CATEGORY="c\x02"))
    )
    lists = TableFormat(
        summary="tags", separator=b"\t", columns=(Column(name="T", kind="list", joined_by=b"|"),)
    )
    assert ", row 1, column T: value 1 of 2 is empty" in refusal(
        lambda path: check_table(path, lists), log(b"|a")
    )


def test_a_history_holds_at_least_one_click(log):
    gone = sequence(HISTORY_ITEM="", HISTORY_CATEGORY="")
    assert refusal(check_sequences, log(sequence(), gone)) == (
        ", row 2, column HISTORY_ITEM: 0 values; expected at least 1 joined by '\\x02'"
    )


def test_a_history_that_is_too_long_says_what_to_do(log):
    def of(count: int) -> bytes:
        same = "\x02".join(["x"] * count)
        names = [column.name for column in SEQUENCE_NEGATIVE_TABLE.columns[4:]]
        return sequence(**dict.fromkeys(names, same))

    assert check_sequences(log(of(LONGEST_HISTORY))).rows == 1
    assert refusal(check_sequences, log(of(1), of(LONGEST_HISTORY + 1))) == (
        ", row 2, column HISTORY_ITEM: 51 values; expected at most 50 joined by '\\x02'; "
        "leave off others"
    )


@pytest.mark.parametrize(
    "name", ["HISTORY_CATEGORY", "NOCLK_HISTORY_ITEM", "NOCLK_HISTORY_CATEGORY"]
)
def test_histories_of_a_row_are_equally_long(log, name):
    assert refusal(check_sequences, log(sequence(), sequence(**{name: "a"}))) == (
        f", row 2, column {name}: 1 value, but HISTORY_ITEM of the row has 2; expected as many in "
        "both"
    )


FIELDS = st.text("|,ab", max_size=6)


@given(rows=st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=4))
def test_lists_are_taken_exactly_when_python_agrees(tmp_path_factory, rows):
    layout = TableFormat(
        summary="two lists",
        separator=b"\t",
        columns=(
            Column(name="A", kind="list", joined_by=b"|", least=1, most=3),
            Column(name="B", kind="list", joined_by=b",", as_long_as="A"),
        ),
    )

    def good(first: str, second: str) -> bool:
        a, b = first.split("|"), second.split(",")
        return len(a) <= 3 and len(a) == len(b) and all(a) and all(b)

    path = tmp_path_factory.mktemp("log") / "lists.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    wrong = [i for i, row in enumerate(rows, start=1) if not good(*row)]
    if wrong:
        assert f", row {wrong[0]}, column " in refusal(lambda p: check_table(p, layout), path)
    else:
        assert check_table(path, layout).rows == len(rows)


@pytest.mark.parametrize(
    ("generate", "check"),
    [
        (generate_dssm, check_dssm),
        (generate_sequences, check_sequences),
        (
            lambda path, **more: generate_sequences(path, negatives=False, **more),
            lambda path: check_sequences(path, negatives=False),
        ),
    ],
    ids=["dssm", "sequences with negatives", "sequences"],
)
class TestGenerators:
    def test_they_write_what_the_checkers_take(self, tmp_path, generate, check):
        assert check(generate(tmp_path / "log.txt", rows=12_345, seed=3)).rows == 12_345

    def test_the_same_recipe_makes_the_same_file_and_keeps_it(self, tmp_path, generate, check):
        one = generate(tmp_path / "one.txt", rows=500, seed=7)
        two = generate(tmp_path / "two.txt", rows=500, seed=7)
        assert one.read_bytes() == two.read_bytes()
        before = one.stat().st_mtime_ns
        generate(one, rows=500, seed=7)
        assert one.stat().st_mtime_ns == before
        assert generate(two, rows=500, seed=8).read_bytes() != one.read_bytes()

    def test_a_longer_log_begins_like_a_shorter_one(self, tmp_path, generate, check):
        short = generate(tmp_path / "short.txt", rows=300).read_bytes()
        assert generate(tmp_path / "long.txt", rows=10_300).read_bytes().startswith(short)

    def test_a_users_own_file_is_never_overwritten(self, tmp_path, generate, check):
        path = tmp_path / "log.txt"
        path.write_text("mine")
        with pytest.raises(DataError, match="was not generated here, so it is not overwritten"):
            generate(path, rows=10)

    @pytest.mark.parametrize(("rows", "seed"), [(0, 1), (10, -1)])
    def test_impossible_recipes_are_refused(self, tmp_path, generate, check, rows, seed):
        with pytest.raises(DataError, match="expected"):
            generate(tmp_path / "log.txt", rows=rows, seed=seed)


def test_negatives_change_no_other_column(tmp_path):
    without = generate_sequences(tmp_path / "a.txt", rows=400, negatives=False)
    with_them = generate_sequences(tmp_path / "b.txt", rows=400)
    short = [row.rsplit(b"\t", 2)[0] for row in with_them.read_bytes().splitlines()]
    assert short == without.read_bytes().splitlines()


def test_profiles_and_descriptions_are_an_ids_own(tmp_path):
    table = columns(generate_dssm(tmp_path / "log.txt", rows=20_000), DSSM_TABLE)
    for ids, names in (("user_id", DSSM_USER), ("adgroup_id", DSSM_ITEM[:-1])):
        described = set(zip(*(table[name] for name in names), strict=True))
        assert len(described) == len(set(table[ids])) > 1000


def test_advertisements_have_the_shape_of_the_real_ones(tmp_path):
    table = columns(generate_dssm(tmp_path / "log.txt", rows=20_000), DSSM_TABLE)
    _, index = np.unique(table["user_id"], return_index=True)
    of_users = {name: np.array(table[name])[index] for name in DSSM_USER}
    assert 0.5 < np.mean(of_users["pvalue_level"] == "") < 0.58
    assert len(set(table["cms_segid"])) > 80 and len(set(table["cms_group_id"])) == 13
    assert set(table["pid"]) == {"430548_1007", "430539_1007"}
    assert {len(tags.split("|")) for tags in table["tag_brand_list"]} == {1, 2, 3, 4, 5}
    assert "" in table["tag_category_list"]
    assert np.mean([buy == "1" for buy in table["buy"]]) < 0.03
    assert all(c == "1" for c, b in zip(table["clk"], table["buy"], strict=True) if b == "1")
    counts = np.unique(table["cate_id"], return_counts=True)[1]
    assert counts.max() > 100 * np.median(counts)


def test_histories_have_the_shape_of_real_ones(tmp_path):
    table = columns(generate_sequences(tmp_path / "log.txt", rows=10_000), SEQUENCE_NEGATIVE_TABLE)
    lengths = np.array([items.count("\x02") + 1 for items in table["HISTORY_ITEM"]])
    assert lengths.min() == 1 and lengths.max() == LONGEST_HISTORY
    assert 8 < np.median(lengths) < 16
    category_of: dict[str, str] = {}
    for items, categories in (("ITEM", "CATEGORY"), ("HISTORY_ITEM", "HISTORY_CATEGORY")):
        for many, kinds in zip(table[items], table[categories], strict=True):
            for item, kind in zip(many.split("\x02"), kinds.split("\x02"), strict=True):
                assert category_of.setdefault(item, kind) == kind


def test_a_click_has_to_do_with_what_went_before(tmp_path):
    table = columns(generate_sequences(tmp_path / "log.txt", rows=20_000), SEQUENCE_NEGATIVE_TABLE)
    label = np.array(table["CLICKED"]) == "1"

    def shared(name: str, part: slice) -> np.ndarray:
        rows = zip(table[name], table["CATEGORY"], strict=True)
        return np.array([kinds.split("\x02")[part].count(kind) for kinds, kind in rows], float)

    whole = auc(label, shared("HISTORY_CATEGORY", slice(None)))
    recent = auc(label, shared("HISTORY_CATEGORY", slice(-4, None)))
    assert whole > 0.68
    # What was passed over says less, and so does what is long ago.
    assert recent > auc(label, shared("NOCLK_HISTORY_CATEGORY", slice(-4, None))) + 0.1
    assert recent > auc(label, shared("HISTORY_CATEGORY", slice(0, 4))) + 0.01


def test_a_click_has_to_do_with_user_and_advertisement_together(tmp_path):
    table = columns(generate_dssm(tmp_path / "log.txt", rows=60_000), DSSM_TABLE)
    label = np.array(table["clk"]) == "1"

    def rates_of(*names: str) -> float:
        """AUC on the second half of the click rates that the first half has for values."""
        keys = np.array(["|".join(k) for k in zip(*(table[n] for n in names), strict=True)])
        half = len(keys) // 2
        distinct, which = np.unique(keys, return_inverse=True)
        shown = np.bincount(which[:half], minlength=len(distinct))
        clicked = np.bincount(which[:half], label[:half], minlength=len(distinct))
        rates = (clicked + 0.27) / (shown + 1)
        return auc(label[half:], rates[which[half:]])

    alone = max(rates_of("cms_group_id", "age_level"), rates_of("cate_id", "price"))
    assert rates_of("cms_group_id", "age_level", "price", "cate_id") > max(alone, 0.7)
