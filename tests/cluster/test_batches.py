"""Tasks of some tenths of a second, smaller towards the end."""

from __future__ import annotations

import itertools

from ssmtool.cluster.batches import TASK_S, Batches, Sized


def test_quick_pieces_travel_together_once_they_are_known_to_be_quick() -> None:
    batches = Batches((Sized(at, "R", 0.1) for at in range(1000)), str, lambda: 2, 1000)
    first = next(batches)
    assert [piece.load for piece in first] == ["0", "1", "2", "3"]
    for piece in first:
        batches.learn(piece.number, TASK_S / 40)
    assert 38 <= len(next(batches)) <= 40


def test_every_piece_is_handed_out_once_and_the_last_tasks_are_small() -> None:
    batches = Batches((Sized(at, "R", 0.01) for at in range(500)), lambda at: at, lambda: 2, 500)
    tasks = []
    for task in batches:
        tasks.append(task)
        for piece in task:
            batches.learn(piece.number, 0.01)
    assert [piece.number for task in tasks for piece in task] == list(range(500))
    assert len(tasks[-1]) <= 6 < len(tasks[1])


def test_a_large_piece_travels_alone() -> None:
    sized = [Sized(0, "a", 0.01, 10), Sized(1, "b", 0.01, 50 << 20), Sized(2, "c", 0.01, 10), Sized(3, "d", 9.0)]
    assert [[each.number for each in task] for task in Batches(sized, str, lambda: 1, 4)] == [[0], [1], [2], [3]]


def test_pieces_without_end_are_drawn_as_they_are_needed() -> None:
    numbers = itertools.count()
    batches = Batches((Sized(at, "", 0.2) for at in numbers), str, lambda: 2)
    assert len(next(batches)) == 2
    assert next(numbers) == 3
