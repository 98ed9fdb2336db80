"""`--config FILE` and `--set key=value` → nested values."""

from pathlib import Path

from data_pipeline.errors import InputError

#: A configuration is short; a larger file is something else.
_MAX_BYTES = 1 << 20


def read_values(config_file=None, assignments=()):
    """Reads settings from a file and from single assignments, which win.

    Args:
        config_file: Path or None. YAML or JSON.
        assignments: list of str, each "section.key=value" with a YAML value, or None.

    Returns:
        dict, nested.

    Raises:
        InputError: If the file is missing or not a mapping, or an assignment has no `=`.
    """

    values = {}
    if config_file is not None:
        path = Path(config_file)
        if not path.is_file():
            raise InputError(f"There is no configuration file `{path}`.")
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"`{path}` should be a configuration of at most {_MAX_BYTES} bytes.")
        values = _parse(path.read_bytes(), f"`{path}`")
        if not isinstance(values, dict):
            raise InputError(f"`{path}` should hold keys and values. Received: {values!r}.")
    for assignment in assignments or ():
        key, equals, text = assignment.partition("=")
        if not equals:
            raise InputError(f"`--set` should be KEY=VALUE. Received: {assignment!r}.")
        section = values
        *path, last = key.strip().split(".")
        for name in path:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise InputError(f"`--set {assignment}`: `{name}` holds a value, not keys.")
        section[last] = _parse(text, f"`--set {assignment}`")
    return values


def _parse(text, source):
    import yaml

    try:
        # Anchors can make a small file huge; settings have no use for them.
        for token in yaml.scan(text):
            if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
                raise InputError(f"{source} should hold no YAML anchors (`&`, `*`).")
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{source} is not valid YAML: {error}") from error
