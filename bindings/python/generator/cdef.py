"""cdef.py: the public headers as declarations that cffi understands."""
import hashlib
import pathlib
import re
import tempfile

HEADERS = ("caisson.h", "records.h", "workspace.h", "backend.h")


def declarations(top, model):
    """The text of all headers without comments, directives and attributes."""
    text = "\n".join((top / "include/caisson" / name).read_text() for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#if(def __cplusplus| defined\(__GNUC__\)).*?^#endif", "", text,
                  flags=re.S | re.M)
    limits = re.findall(r"^#define (CSN_\w+_MAX \d+)$", text, re.M)
    text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.M)
    statuses = ", ".join(f"CSN_{s['name']} = {s['value']}" for s in model["statuses"])
    text = text.replace("CSN_STATUS_MAP(CSN_X)", statuses).replace("CSN_API ", "")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join([f"#define {limit}" for limit in limits] + lines) + "\n"


def mark(text):
    """The line of _abi.py that tells from which declarations it was made."""
    return f"# declarations: {hashlib.sha256(text.encode()).hexdigest()}\n"


def compile_abi(text):
    """The module that cffi makes of the declarations: no parser is needed to import it."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(text)
    ffi.set_source("caisson._abi", None)
    with tempfile.TemporaryDirectory() as dir:
        target = pathlib.Path(dir) / "_abi.py"
        ffi.emit_python_code(str(target))
        body = target.read_text()
    return mark(text) + "# mypy: ignore-errors\n" + body
