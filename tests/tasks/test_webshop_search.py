"""WebShop's search engine: BM25 by hand, English as Lucene reads it, one index for all."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lmgym.env.registry import build
from lmgym.tasks.webshop import search
from lmgym.tasks.webshop.search import Index, analyse

DOCUMENTS = [("red rug for the floor", 1), ("red red lamp", 2), ("blue rugs rug", 3), ("nothing else", 4)]


@pytest.fixture
def index(tmp_path):
    search.build(DOCUMENTS, tmp_path)
    return Index(tmp_path)


def bm25(query, number):
    """Lucene's formula over the analysed words, k1 0.9 and b 0.4."""
    texts = [analyse(text) for text, _ in DOCUMENTS]
    mean = sum(map(len, texts)) / len(texts)
    total = 0.0
    for term in analyse(query):
        having = sum(term in text for text in texts)
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        count = texts[number].count(term)
        total += rarity * count / (count + 0.9 * (1 - 0.4 + 0.4 * len(texts[number]) / mean))
    return total


def test_words_are_stemmed_and_stopped_as_lucene_does():
    assert analyse("The Dogs' running-shoes, 3.5 oz, $1,299 and women's it's") == [
        *("dog", "run", "shoe", "3.5", "oz", "1,299", "women")
    ]


@pytest.mark.parametrize("query", ["red rug", "rug rug lamp", "blue", "floor lamps"])
def test_hits_are_in_the_order_of_bm25(index, query):
    scores = [bm25(query, number) for number in range(4)]
    wanted = sorted((n for n in range(4) if scores[n] > 0), key=lambda n: (-scores[n], n))
    assert list(index.hits(query)) == wanted
    found = index._engine.get_scores_from_ids([index._terms[term] for term in analyse(query)])
    assert np.allclose(found, scores, atol=1e-5)


def test_equal_documents_come_in_their_order_and_at_most_50(tmp_path):
    search.build([("same words here", 1)] * 120, tmp_path)
    assert Index(tmp_path).hits("words") == tuple(range(50))


@pytest.mark.parametrize("query", ["", "the and", "xyzzy", "  ", "\x00"])
def test_what_is_in_no_document_finds_nothing(index, query):
    assert index.hits(query) == ()


def test_threads_search_at_once(index):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: index.hits(f"rugs red{n} lamps"), range(200)))
    assert found == [index.hits("rugs lamps")] * 200


def test_endless_words_are_cut_and_not_remembered(index):
    assert [len(word) for word in analyse("x" * 600)] == [255, 255, 90]
    assert index.hits("rug " + "x" * 1_000_000) == index.hits("rug")
    assert index._remembered.cache_info().currsize == 1


def test_an_index_is_built_once_and_read_by_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    search.kept(["test"], lambda: DOCUMENTS)
    (folder,) = (tmp_path / "webshop").iterdir()
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    code = (
        "from lmgym.tasks.webshop import search\n"
        "def never():\n    raise AssertionError('built again')\n"
        "print(search.kept(['test'], never).hits('blue'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(2,)\n"
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_processes_that_build_at_once_leave_one_whole_index(tmp_path, monkeypatch):
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    code = (
        "from lmgym.tasks.webshop import search\n"
        "print(search.kept(['race'], lambda: [(f'word{n} rug', 1) for n in range(3000)]).hits('word7'))"
    )
    racers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {racer.communicate()[0] for racer in racers} == {"(7,)\n"}
    assert len(list((tmp_path / "webshop").iterdir())) == 1


def test_where_the_cache_cannot_be_written_the_temporary_folder_serves(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path / "file" / "no"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert search.kept(["elsewhere"], lambda: DOCUMENTS).hits("lamp") == (1,)
    assert list(tmp_path.rglob("goals.npy"))


def test_environments_of_a_process_share_one_shop():
    first, second = build("WebShop-v0", split="train"), build("WebShop-v0", split="test", goals="human")
    assert first.unwrapped.shop is second.unwrapped.shop
