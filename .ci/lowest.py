"""Print `name==bound` for each package that `pip install ".[test]"` asks for, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
asked, extras = list(project["dependencies"]), ["test"]
for extra in extras:  # an extra that another one names is added while the loop goes on
    for requirement in project["optional-dependencies"][extra]:
        if names := re.fullmatch(rf"{project['name']}\[(.*)\]", requirement):
            extras += names[1].split(",")
        else:
            asked.append(requirement)
bounds = (re.match(r"([\w.-]+)>=([\w.]+)", requirement).groups() for requirement in asked)
sys.stdout.writelines(f"{name}=={bound}\n" for name, bound in bounds)
