"""How `ssmtool fuzz` launches these kernels, and what they must compute. Needs NumPy alone.

For each kernel two functions: `draw_KERNEL(draw)` makes one random launch, KERNEL takes its arguments by name and
returns what they are afterwards. Small numbers are the simple ones: a failure is shrunk towards them.
"""

import numpy as np


def draw_vec_axpy(draw):
    n = draw.integer("n", 1, 700)
    blocks = -(-n // 256) + draw.integer("idle blocks", 0, 1)
    args = {"y": draw.array("y", n), "x": draw.array("x", n), "a": draw.number("a"), "n": n}
    return {"grid": blocks, "block": 256, "args": args}


def vec_axpy(y, x, a, n):
    return {"y": a * x + y}


def draw_vec_rms_norm(draw):
    rows, columns = draw.integer("rows", 1, 5), draw.integer("columns", 1, 200)
    threads = draw.pick("threads", [1, 2, 64, 128])
    return {
        "grid": rows,
        "block": threads,
        "shared_bytes": 4 * threads,
        "args": {
            "out": draw.output(rows, columns),
            "x": draw.array("x", rows, columns),
            "weight": draw.array("weight", columns),
            "columns": columns,
            "eps": draw.pick("eps", [1e-6, 1e-2]),
        },
        "policy": {"out": "norm"},
    }


def vec_rms_norm(out, x, weight, columns, eps):
    return {"out": x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * weight}


def draw_vec_softmax(draw):
    rows, columns = draw.integer("rows", 1, 5), draw.integer("columns", 1, 100)
    width = draw.pick("width", [1, 30, 200])
    x = draw.array("x", rows, columns, low=-width, high=width)
    # A small power is as far off as the largest in absolute terms: each row is judged as a whole.
    limits = {"nmse": 1e-12, "max_rms": 1e-5, "atol": 1e-44}
    return {"grid": rows, "block": 32, "args": {"x": x, "columns": columns}, "policy": {"x": limits}, "group": {"x": 1}}


def vec_softmax(x, columns):
    power = np.exp(x - x.max(axis=1, keepdims=True))
    return {"x": power / power.sum(axis=1, keepdims=True)}
