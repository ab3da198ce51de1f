"""Compiled loops that read native logs: an optional fast path with the same results.

The loops need Numba (the extra `fast`). Without Numba every log still reads, with the same results. Tests compare both
paths on every sample, on drawn traces and on mutated bytes (`tests/graphs/reading/native/test_compiled.py` and
`benchmarks/fuzz.py`).

    compiling.py      how a function is compiled
    numbers.py        a JSON number as a double
    scan_tables.py    what a scan is given and what it fills
    kernels.py        the loops over bytes
    text_columns.py   the loops that gather the texts of a column
    scan.py           arrays in and out of the loops; the only caller of both
    threads.py        when the loops are used, and by how many threads

Rules for code in this folder:

1. **Refuse, never repair.** A loop takes plain text only: objects without nested objects, strings without escapes,
   numbers whose nearest double is certain. It refuses everything else with the whole trace.
   `graphs.formats.native.structs` then reads that trace or names its fault. A loop holds no error messages.
2. **Accept only what the structs accept, with the same values.** A field that `wire.py` gains must be refused or
   read here too. Keys, types and limits come from `wire.py` and `schema.py` through `scan._FORMAT`, never from
   constants.
3. **Input**: `text` is valid UTF-8 (`scan` checks), at most `scan.MOST_TEXT` bytes, since positions are int32.
   Limits of size are checked before, the limit of depth by `NEVER_DEEPER` and on the header.
4. **Memory**: loops fill arrays that `scan` allocates and allocate none themselves (they are compiled without
   Numba's runtime, `compiling._OPTIONS`). There is no bounds check in compiled code: every index is compared with
   the end that was passed in, and `scan` sizes the arrays by an upper bound on the number of objects in the text.
5. **Time is linear in the text.** Hash tables stop after a fixed number of probes and refuse, so that chosen ids
   cannot make them slow.
6. **No interpreter lock** is held, so a loop touches no Python object. Threads share nothing but read-only tables.
7. The folder is imported by name inside functions, since loading a compiler takes a second.
8. Loops that call each other stay in one file where they can: Numba compiles a stored function again only when its own
   file has changed.
"""
