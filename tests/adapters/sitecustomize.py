"""A second environment for the peers: let torchvision load beside a CPU build of torch.

The package index has torchvision compiled for CUDA. Beside a CPU build of torch its compiled part
does not load (`libc10_cuda.so: cannot open shared object file`), and then `import torchvision`
fails with `operator torchvision::nms does not exist`. Declared here, the operators exist, and the
rest of torchvision works. Nothing that is tested calls them. `make` copies this file into that
environment, where Python imports it at its start.
"""

import importlib.util
from pathlib import Path

found = importlib.util.find_spec("torchvision")
if found is not None and found.submodule_search_locations:
    import torch

    compiled = Path(found.submodule_search_locations[0]) / "_C.so"
    try:
        torch.ops.load_library(str(compiled))
    except OSError:
        declared = torch.library.Library("torchvision", "DEF")  # for as long as Python runs
        for name in ("nms", "qnms"):
            declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
