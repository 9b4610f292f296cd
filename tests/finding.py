"""One side of a search at a time, as the tests of stores ask for it."""

from __future__ import annotations

from yester.model import Filters, Probe

EVERYTHING = Filters()


def by_words(store, terms, filters=EVERYTHING, limit=100):
    return store.probe(Probe(filters, dict.fromkeys(terms, 1.0), words=limit)).candidates


def statistics(store, terms, filters=EVERYTHING):
    return store.probe(Probe(filters, dict.fromkeys(terms, 1.0))).statistics


def alike(store, term):
    return store.probe(Probe(begin={term: 1.0})).alike[term]


def nearest(store, vector, model, filters=EVERYTHING, limit=100):
    probe = Probe(filters, vector=lambda: vector, model=model, nearest=limit)
    return list(store.probe(probe).near.items())


def cosines(store, vector, model, ids):
    return store.around(Probe(vector=lambda: vector, model=model), (), ids, ()).near


def neighbours(store, ids):
    return store.around(Probe(), ids, (), ()).pairs


def touching(store, files, filters=EVERYTHING, limit=100):
    return store.probe(Probe(filters, files=files, most_files=limit)).touching
