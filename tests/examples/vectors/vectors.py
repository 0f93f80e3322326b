"""Print the verdicts of an example on the vectors: vectors.py verify.py FILE."""

import json
import runpy
import sys

verify = runpy.run_path(sys.argv[1])["verify"]
with open(sys.argv[2], encoding="utf-8") as file:
    print(
        json.dumps([verify(v["secret"], v["header"], v["body"].encode(), v["now"]) for v in json.load(file)])
    )
