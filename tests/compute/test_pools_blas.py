"""`limit_blas_threads` limits linear algebra to one thread before and after the import of numpy."""

import subprocess
import sys

import pytest

CODE = """
{before}
from roboyard.compute import limit_blas_threads
limit_blas_threads()
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
print([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])
"""


@pytest.mark.parametrize("before", ["", "import numpy"], ids=["before numpy", "after numpy"])
def test_blas_libraries_have_one_thread(before: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before)],
        env={"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    counts = eval(process.stdout)
    assert counts
    assert set(counts) == {1}
