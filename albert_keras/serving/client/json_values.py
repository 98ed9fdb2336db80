"""Python values as the REST interface of `tensorflow_model_server` takes them."""

import base64

from data_pipeline.errors import InputError


def jsonable(value):
    """Returns a value as the server takes it in JSON.

    Args:
        value: Nested lists, tuples, dicts and arrays of str, bytes, int, float and bool. Bytes and
            strings with undecodable bytes (lone surrogates, as in command-line arguments) become
            `{"b64": ...}`.

    Raises:
        InputError: If something else is in it.
    """
    if isinstance(value, dict):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(one) for one in value]
    if isinstance(value, str):
        try:
            encoded = value.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise InputError(f"A text has half a character in it: {ascii(value)}.") from error
        return value if encoded.decode(errors="replace") == value else jsonable(encoded)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, bool | int | float):
        return value
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return jsonable(value.tolist())
    raise InputError(
        "Inputs should be nested lists or arrays of strings, bytes and numbers. "
        f"Received: {type(value).__name__}."
    )
