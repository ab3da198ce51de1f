"""Native logs on a Ray cluster: advantages and ledgers, computed side by side, a Parquet file for each part.

A first pass looks over the files in parallel and returns 64 bytes for each trace. The driver divides the groups into
parts, and a task for each part reads its traces from the files themselves, computes, and writes its file. So only the
index travels: no event is sent from one process to another. Every node must see the logs and the output folder under
the same paths.

A part is written whole or not at all, with a note beside it. A run that is repeated with the same arguments and
unchanged logs computes the parts that are not there yet. Ray starts a task again whose worker died.

`validate` counts in the same parts and writes nothing. `replay` makes the runs of a plan by actors.
"""

from credit.ray.calls import assign, compose
from credit.ray.corpus_parts import validate
from credit.ray.part_runs import Parts
from credit.ray.row_actors import RemoteRowAdvantages, rows_advantage_task
from credit.ray.run_actors import replay

__all__ = ["Parts", "RemoteRowAdvantages", "assign", "compose", "replay", "rows_advantage_task", "validate"]
