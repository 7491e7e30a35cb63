"""The programs behind sessions: they take commands from a socket and report exit statuses on it.

Commands find it closed, and unlike a pipe it cannot be opened again through /proc. A report counts only with a nonce
that the program reads after the command.
"""

from __future__ import annotations

CONTROL = 198  # descriptor of the socket
# The report of a command stands at the head of the loop, where a `continue` of the command leads; after its `break` the
# loop starts anew. A function around `eval` would stop both as well, but keep `declare` and `set --` to itself.
SHELL = r"""
__code=0 __due= __line=$'\n'
__status() { return "$1"; }
__loop='
while
    __code=$?
    if [[ $__due ]]; then
        __due=
        { IFS= read -r -d "" -u 198 __nonce; printf "%s %s\0" "$__nonce" "$__code"; unset __nonce; } >&198
    fi
    IFS= read -r -d "" -u 198 __command
do
    __due=1
    eval "__status $__code$__line$__command" 198<&- </dev/null
done
if [[ $__due ]]; then eval "$__loop"; fi
'
eval "$__loop"
"""
PYTHON = r"""
import ast, linecache, os, sys, traceback
def _session(control=198):
    os.set_inheritable(control, False)
    source, space, number = os.fdopen(control, 'rb', 0), sys.modules['__main__'].__dict__, 0
    def line():
        text = bytearray()
        while (byte := source.read(1)) != b'\0':
            if not byte:
                os._exit(0)
            text += byte
        return text.decode('utf-8', 'replace')
    del space['_session']
    while True:
        text, number, code = line(), number + 1, 0
        name = '<input-%d>' % number
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        try:
            body = ast.parse(text, name).body
            last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), name, 'exec'), space)
            if last is not None and (value := eval(compile(last, name, 'eval'), space)) is not None:
                print(repr(value))
        except SystemExit:
            raise
        except BaseException as error:
            code, frames = 1, error.__traceback__
            while frames and not frames.tb_frame.f_code.co_filename.startswith('<input-'):
                frames = frames.tb_next
            traceback.print_exception(type(error), error, frames)
        try:
            sys.stdout.flush(), sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            pass
        os.write(control, ('%s %d\0' % (line(), code)).encode())
_session()
"""
