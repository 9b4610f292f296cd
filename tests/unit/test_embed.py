"""Vectors: the same for the same text whatever stands beside it, near for what belongs together."""

from __future__ import annotations

import http.server
import json
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.errors import ModelError
from yester.text.embed import (
    DOCUMENT_TOKENS,
    LocalEmbedder,
    open_embedder,
    split_parts,
    why_not,
)
from yester.text.models import DEFAULT, PACKAGED, Model, ModelFile
from yester.text.server import HttpEmbedder
from yester.text.vector_cache import CachedEmbedder
from yester.text.wordpiece import WordPiece

pytest.importorskip("onnxruntime")
PIECES = WordPiece.read_vocabulary(PACKAGED / DEFAULT / "vocab.txt")
TEXTS = [
    "The login form rejects passwords with a colon",
    "ok",
    "",
    "We moved the rate limiter in front of the cache, because a cold cache let every request by",
    "数据库迁移失败",
    "def recall(query, k=10): return ranked(candidates(query))[:k]",
]


@pytest.fixture(scope="module")
def embedder():
    opened = open_embedder({"embedder": DEFAULT}, PACKAGED)
    assert opened is not None
    return opened


@pytest.fixture(scope="module")
def vectors(embedder):
    return embedder.embed(TEXTS)


def test_a_vector_has_the_models_length_and_length_one(embedder, vectors):
    assert vectors.shape == (len(TEXTS), embedder.dims) == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_texts_are_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 384)


def test_the_same_text_has_the_same_bytes_in_any_company(embedder, vectors):
    backwards = embedder.embed(TEXTS[::-1])[::-1]
    assert backwards.tobytes() == vectors.tobytes()
    assert embedder.embed(TEXTS[3:4]).tobytes() == vectors[3:4].tobytes()


def test_threads_do_not_disturb_each_other(embedder, vectors):
    with ThreadPoolExecutor(3) as pool:
        for rows in pool.map(lambda _: embedder.embed(TEXTS[:2]), range(3)):
            assert rows.tobytes() == vectors[:2].tobytes()


@each(
    ("question", "answer", "other"),
    [
        (
            "why do users fail to sign in",
            "The login form rejects passwords with a colon",
            "Raise the thumbnail size in the gallery",
        ),
        (
            "too many requests reach the database",
            "Put the rate limiter in front of the cache",
            "Rename the colour variables of the dark theme",
        ),
    ],
)
def test_what_belongs_together_is_nearer(embedder, question, answer, other):
    asked = embedder.embed_query(question)
    near, far = embedder.embed([answer, other]) @ asked
    assert near > far + 0.05


def test_a_question_is_read_otherwise_than_a_document(embedder):
    as_document = embedder.embed(["rate limits"])[0]
    assert not np.allclose(embedder.embed_query("rate limits"), as_document, atol=1e-3)


def test_what_stands_behind_the_limit_changes_nothing(embedder):
    long = "cache " * 126
    one, other = embedder.embed([long + "one", long + "two"])
    assert np.array_equal(one, other)


# A table of word vectors


@pytest.fixture
def potion(tmp_path):
    """Three words in two dimensions, in the files potion comes in."""
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "cat": 4, "dog": 5, "##s": 6}
    table = np.array([[9, 9]] * 4 + [[1, 0], [0, 1], [0, 3]], np.float32)
    place = tmp_path / "models" / "tiny"
    place.mkdir(parents=True)
    header = json.dumps(
        {"embeddings": {"dtype": "F32", "shape": table.shape, "data_offsets": [0, table.nbytes]}}
    ).encode()
    (place / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + table.tobytes())
    (place / "tokenizer.json").write_text(json.dumps({"model": {"vocab": words}}))
    files = (ModelFile("w.safetensors", 0, "0" * 64), ModelFile("tokenizer.json", 0, "1" * 64))
    model = Model("tiny", files, "MIT", "tiny", dims=2, pooling="mean", query_prefix="",
                  band=(0.0, 1.0), vocabulary="tokenizer.json")  # fmt: skip
    return LocalEmbedder(model, tmp_path)


def test_a_static_vector_is_the_mean_of_the_known_pieces(potion):
    rows = potion.embed(["Cat", "cat dog", "cats unheard", "unheard", ""])
    half = 0.5**0.5
    expected = [[1, 0], [half, half], [1 / 10**0.5, 3 / 10**0.5], [0, 0], [0, 0]]
    assert np.allclose(rows, expected, atol=1e-6)
    assert np.array_equal(potion.embed_query("cat"), [1, 0])


# The cache


def test_a_cached_vector_has_the_same_bytes_and_is_not_made_again(embedder, vectors, tmp_path):
    first = CachedEmbedder(embedder, tmp_path)
    assert first.embed([*TEXTS, TEXTS[0]])[:-1].tobytes() == vectors.tobytes()
    asked = first.embed_query("why")
    first.close()

    class Unwilling:
        name, sha, dims, band = embedder.name, embedder.sha, embedder.dims, embedder.band

        def embed(self, texts):
            raise AssertionError(texts)

        def embed_query(self, text):
            raise AssertionError(text)

    second = CachedEmbedder(Unwilling(), tmp_path)
    assert second.embed(TEXTS).tobytes() == vectors.tobytes()
    assert second.embed_query("why").tobytes() == asked.tobytes()
    with pytest.raises(AssertionError):
        second.embed(["why"])  # a question read as a document is another vector
    second.close()


def test_two_processes_may_fill_one_cache(potion, tmp_path):
    place = tmp_path / "cache"
    both = [CachedEmbedder(potion, place), CachedEmbedder(potion, place)]
    texts = [f"cat {'dog ' * n}" for n in range(200)]
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda cached: cached.embed(texts), both)
    assert one.tobytes() == two.tobytes() == potion.embed(texts).tobytes()
    for cached in both:
        cached.close()


def test_a_broken_cache_costs_time_and_no_answer(potion, tmp_path):
    cached = CachedEmbedder(potion, tmp_path / "cache")
    cached.close()
    assert np.array_equal(cached.embed(["cat"]), [[1, 0]])


# A server


class Scripted(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers.get("Authorization"), given))
        status, headers, body = self.server.answer(given)
        if status is None:
            self.server.released.wait(10)  # says nothing until the test is over
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as scripted:
        scripted.daemon_threads = False
        scripted.asked, scripted.released = [], threading.Event()
        scripted.url = f"http://127.0.0.1:{scripted.server_port}/v1"
        thread = threading.Thread(target=scripted.serve_forever, args=(0.01,))
        thread.start()
        yield scripted
        scripted.released.set()
        scripted.shutdown()
        thread.join()


def embedded(given, dims=2):
    """An honest answer, last text first as some servers do: (length of the text, 1, …)."""
    rows = [
        {"index": at, "embedding": [len(text), *[1] * (dims - 1)]}
        for at, text in enumerate(given["input"])
    ]
    return 200, {}, json.dumps({"object": "list", "data": rows[::-1]}).encode()


def test_a_server_is_asked_in_batches_and_its_order_does_not_matter(server):
    server.answer = embedded
    remote = HttpEmbedder(server.url, "text-embed", 2, key="k3y")
    rows = remote.embed(["x" * n for n in range(70)])
    assert rows.shape == (70, 2)
    assert np.allclose(rows[3], np.array([3, 1]) / 10**0.5)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert [len(given["input"]) for _, _, given in server.asked] == [32, 32, 6]
    path, key, given = server.asked[0]
    assert (path, key, given["model"]) == ("/v1/embeddings", "Bearer k3y", "text-embed")
    assert given["input"][0] == " "  # servers refuse an empty text
    assert remote.embed_query("half a pair \ud800").shape == (2,)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((429, {"Retry-After": "7"}, b""), r"is busy \(429\)$"),
        ((429, {}, b""), r"is busy \(429\)$"),
        ((401, {}, b""), r"does not take this key \(401\); check embed.key"),
        ((500, {}, b"oops"), r"failed \(500\)"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), r"points elsewhere \(302\)"),
        ((200, {}, b"{"), "not of its protocol"),
        ((200, {}, b"[]"), "not a list of embeddings"),
        ((200, {}, b'{"data": [{"embedding": "x"}]}'), "not a list of embeddings"),
        ((200, {}, b'{"data": [{"embedding": [1, null]}]}'), "not a list of embeddings"),
        ((200, {}, b'{"data": []}'), "0 vectors came for 1 texts"),
        ((200, {}, b'{"data": [{"index": 5, "embedding": [1, 2]}]}'), "1 vectors came"),
        (
            (200, {}, b'{"data": [{"embedding": [1, 2, 3]}]}'),
            "the vectors have 3 numbers, but embed.dims is 2; correct it",
        ),
        ((None, {}, b""), "no answer within 0.1 s"),
    ],
)
def test_whatever_a_server_does_wrong_is_one_sentence(server, answer, said):
    server.answer = lambda _: answer
    silent = answer[0] is None
    remote = HttpEmbedder(server.url, "m", 2, key="s3cret", query_seconds=0.1 if silent else 60)
    with pytest.raises(ModelError, match=f"embeddings: 127.0.0.1.*{said}") as caught:
        remote.embed_query("a private text")
    assert "s3cret" not in str(caught.value)
    assert "private" not in str(caught.value)


def test_a_server_that_is_not_there_is_one_sentence():
    with pytest.raises(ModelError, match=r"embeddings: 127.0.0.1: .*refused"):
        HttpEmbedder("http://127.0.0.1:9/v1", "m", 2).embed(["a"])


def test_no_variable_sends_texts_elsewhere(server, monkeypatch):
    server.answer = embedded
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert HttpEmbedder(server.url, "m", 2).embed(["a"]).shape == (1, 2)


@each(
    ("url", "fine"),
    [
        ("http://localhost:11434/v1", True),
        ("http://[::1]:8080", True),
        ("https://models.example/v1", True),
        ("http://models.example/v1", False),
        ("http://127.0.0.1.models.example/v1", False),
        ("http://10.0.0.5/v1", False),
        ("ftp://localhost", False),
        ("https://sam:pw@models.example", False),
        ("models.example", False),
        ("http://localhost:port", False),
    ],
)
def test_texts_leave_the_machine_encrypted_or_not_at_all(url, fine):
    settings = {"embedder": "http", "embed.url": url, "embed.model": "m", "embed.dims": 2}
    assert (open_embedder(settings, PACKAGED) is not None) is fine
    assert (why_not(settings, PACKAGED) == "") is fine


# No embedder


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"embedder": "none"}, 'the setting embedder is "none"'),
        ({"embedder": "huge"}, "is 'huge', but must be one of yester-embed-1, arctic-embed-s"),
        ({"embedder": "http"}, "needs embed.url, embed.model and embed.dims"),
        ({"embedder": "potion-base-8M"}, "is not there; run: yester model fetch potion-base-8M"),
    ],
)
def test_what_cannot_be_opened_is_none_with_a_reason(tmp_path, values, reason):
    assert open_embedder(values, tmp_path) is None
    assert reason in why_not(values, tmp_path)


def test_a_file_that_is_no_model_is_none_with_a_reason(tmp_path):
    place = tmp_path / "models" / "arctic-embed-s"
    place.mkdir(parents=True)
    with open(place / "model.onnx", "wb") as file:
        file.truncate(34_015_111)
    assert open_embedder({"embedder": "arctic-embed-s"}, tmp_path) is None
    assert "arctic-embed-s cannot be opened" in why_not({"embedder": "arctic-embed-s"}, tmp_path)


def in_a_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@each("library", ["onnxruntime", "numpy"])
def test_without_a_library_there_is_none_and_the_reason_names_it(library):
    said = in_a_process(
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pathlib import Path\n"
        "from yester.text.embed import open_embedder, why_not\n"
        "print(open_embedder({}, Path('/nonexistent')), why_not({}, Path('/nonexistent')))"
    )
    assert said.startswith(f"None {library} cannot be imported")
    assert f"pip install {library}" in said


@pytest.mark.requirement("OPS-03")
def test_the_library_that_runs_the_model_tells_nobody_of_it(tmp_path):
    code = (
        "from pathlib import Path; from yester.text.embed import open_embedder\n"
        "open_embedder({}, Path('/nonexistent')).embed(['hello'])"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"HOME": str(tmp_path)}, cwd=tmp_path)
    assert done.returncode == 0
    assert list(tmp_path.rglob("*")) == []  # its id and what it is going to send lie in ~/.cache


def test_importing_the_module_loads_nothing_heavy():
    heavy = ["numpy", "onnxruntime", "apsw", "http.client", "ssl"]
    code = f"import sys, yester.text.embed; print([m for m in {heavy} if m in sys.modules])"
    assert in_a_process(code) == "[]"


def test_numpy_is_loaded_with_one_thread_and_the_environment_is_put_back(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    code = (
        "import os; from yester.libraries import load_numpy; np = load_numpy()\n"
        "a = np.ones((600, 600))\n"
        "a @ a; print(len(os.listdir('/proc/self/task')) if os.path.isdir('/proc') else 1,"
        " os.environ['OMP_NUM_THREADS'], 'OPENBLAS_NUM_THREADS' in os.environ)"
    )
    assert in_a_process(code) == "1 3 False"


# Long texts


def test_a_short_text_is_one_part():
    assert split_parts("  One line.\n\nAnother.  ") == ["One line.\n\nAnother."]
    assert split_parts(" \n\x00 ") == []


def test_a_long_text_is_cut_between_its_paragraphs():
    paragraphs = [f"Paragraph {n}: " + "some words about it. " * 14 for n in range(3)]
    assert split_parts("\n\n".join(paragraphs)) == [text.strip() for text in paragraphs]


def test_where_there_are_no_paragraphs_lines_and_sentences_are_kept_whole():
    lines = [f"line {n} holds these seven words, no full stop" for n in range(30)]
    assert all(
        line in lines for part in split_parts("\n".join(lines)) for line in part.splitlines()
    )
    sentences = " ".join(f"Sentence {n} holds these seven words here." for n in range(40))
    assert all(part.endswith("here.") for part in split_parts(sentences))
    assert all(part.endswith("。") for part in split_parts("我们把缓存移到了前面。" * 40))


def test_of_too_many_parts_the_beginning_and_the_end_stay():
    text = "\n\n".join(f"Paragraph {n}: " + "some words about it. " * 20 for n in range(20))
    parts = split_parts(text)
    heads = [part.split(":")[0] for part in parts]
    assert heads == [f"Paragraph {n}" for n in (0, 1, 2, 3, 4, 5, 18, 19)]
    assert split_parts(text, most_parts=1) == parts[:1]


def test_a_huge_text_is_cut_in_a_bounded_time():
    assert len(split_parts("word " * 2_000_000)) == 8
    assert len(split_parts("x" * 5_000_000)) >= 1


def pieces_of(texts):
    return [number for text in texts for number in PIECES.piece_numbers(text)]


@given(st.text(max_size=400), st.integers(1, 6), st.integers(3, 40))
def test_parts_fit_and_together_say_what_the_text_said(text, times, most_tokens):
    text = text * times
    parts = split_parts(text, most_tokens, most_parts=10_000)
    assert pieces_of(parts) == [*PIECES.piece_numbers(text)]
    for part in parts:
        words = part.split()
        assert len([*PIECES.piece_numbers(part)]) <= max(most_tokens - 2, 1) or len(words) == 1


@given(st.text())
def test_splitting_is_the_same_every_time(text):
    assert split_parts(text) == split_parts(text)
    assert len(split_parts(text * 9, 16, 5)) <= 5


def test_every_part_fits_what_the_embedder_reads():
    text = "def f(x):\n    return {'a': [x, x**2], 'b': \"c\"}\n\n" * 60
    assert (
        max(len(PIECES.encode_text(part, 10_000)) for part in split_parts(text)) <= DOCUMENT_TOKENS
    )


@each(("words", "read"), [(45, True), (58, False)])
def test_a_question_is_read_to_its_sixty_fourth_token(embedder, words, read):
    one, other = (embedder.embed_query("cat " * words + end) for end in ("cat", "quantum"))
    assert (not np.array_equal(one, other)) is read
