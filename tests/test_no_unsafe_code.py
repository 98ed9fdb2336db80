"""Nothing in the package can run what a file says: no pickle, eval, unsafe YAML or shell."""

import ast

import pytest

from tests.repository import PACKAGES

NAMES = ("albert_keras", "data_pipeline")
MODULES = {"pickle", "cPickle", "marshal", "dill", "joblib", "shelve", "cloudpickle"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    "yaml.load",
    "yaml.load_all",
    "yaml.unsafe_load",
    "yaml.full_load",
    "torch.load",
    "os.system",
}
OPTIONS = {"shell", "allow_pickle"}


def faults(source):
    """Yields what is unsafe in Python code, with its line."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module.split(".")[0]]
        for name in MODULES.intersection(names):
            yield node.lineno, name
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in CALLS | METHODS and not _is_weights_only(node):
                yield node.lineno, name
            for keyword in node.keywords:
                is_off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
                if keyword.arg in OPTIONS and not is_off:
                    yield node.lineno, keyword.arg


def _is_weights_only(call):
    """Tells whether a call is `torch.load(..., weights_only=True)`, which runs nothing."""
    given = {one.arg: getattr(one.value, "value", None) for one in call.keywords}
    return ast.unparse(call.func) == "torch.load" and given.get("weights_only") is True


@pytest.mark.parametrize("package", NAMES)
def test_no_file_runs_what_it_reads(package):
    files = sorted((PACKAGES / package).rglob("*.py"))
    assert len(files) > 50
    found = {path: list(faults(path.read_text(encoding="utf-8"))) for path in files}
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "eval(text)",
        "yaml.load(file)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(line, shell=flag)",
        "torch.load(path)",
        "torch.load(path, weights_only=flag)",
    ],
)
def test_what_is_unsafe_is_seen(source):
    assert list(faults(source))
    assert not list(faults("yaml.safe_load(file); np.load(path, allow_pickle=False)"))
    assert not list(faults("torch.load(path, weights_only=True)"))
