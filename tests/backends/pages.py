"""A site of pages that do what pages may do to a browser, served in this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from lmgym.backends.browser.gate import Request, Response, Sites

HERE, THERE = "http://here.test", "http://there.test"
PAGES = {
    "/": "<title>Start</title><h1>Hello</h1><a href='/next'>Next</a>",
    "/next": "<title>Next</title><p>second page</p><a href='/'>Back</a>",
    "/form": """<title>Form</title><form action='/said' method='post'>
        <label>Name <input name='name'></label>
        <label><input type='checkbox' name='sure' value='yes'> sure</label>
        <select name='colour'><option>red</option><option value='b'>blue</option></select>
        <button>Send</button></form>""",
    "/clock": """<p id='now'></p><script>
        setInterval(() => { now.textContent = Date.now() + ' ' + performance.now(); }, 100);</script>""",
    "/frames": "<title>Outer</title><p>outside</p><iframe src='/inner' style='width:300px;height:200px'></iframe>",
    "/inner": "<p>inside</p><button onclick='this.textContent=\"pressed\"'>Press</button><iframe src='/leaf'></iframe>",
    "/leaf": "<input aria-label='deep'>",
    "/shadow": """<div id='host'></div><button>after</button><script>
        host.attachShadow({mode: 'open'}).innerHTML = '<button>in the shadow</button>';</script>""",
    "/covered": """<button id='under' onclick='document.title=\"hit\"'
        style='position:absolute;left:10px;top:10px;width:80px;height:40px'>under</button>
        <div style='position:absolute;left:30px;top:0;width:200px;height:100px;background:white'></div>""",
    "/buried": """<button style='position:absolute;left:10px;top:10px'>under</button>
        <div style='position:absolute;left:0;top:0;width:300px;height:300px;background:white'></div>""",
    "/outside": """<img src='http://there.test/a.png'><iframe src='http://there.test/'></iframe>
        <script>fetch('http://127.0.0.1:8123/').catch(() => {}); new WebSocket('ws://there.test/socket');
        try { new RTCPeerConnection(); } catch (error) { document.title = error.name; }</script>""",
    "/redirected": "<a href='/away'>away</a>",
    "/links": """<a href='http://there.test/'>there</a><a href='file:///etc/passwd'>file</a>
        <a href='data:text/html,<h1>hi'>data</a><a href='/file.bin' download>file</a>""",
    "/alert": '<button onclick=\'alert("mind the gap")\'>warn</button><button onclick=\'if (confirm("sure?")) '
    'document.title="yes"\'>ask</button>',
    "/alerts": "<button onclick='while (true) alert(1)'>go</button>",
    "/close": "<title>Closing</title><a href='/closing' target='_blank'>open</a>",
    "/closing": "<button onclick='window.close()'>close</button>",
    "/loop": "<button onclick='while (true);'>go</button>",
    "/again": "<script>location.href = '/again?' + Math.random();</script>",
    "/hog": "<button onclick='h=[]; for (;;) h.push(new Uint8Array(1 << 24).fill(1))'>go</button>",
    "/popups": "<button onclick='for (let i = 0; i < 20; i++) window.open(\"/next?\" + i)'>go</button>",
    "/store": """<p id='seen'></p><script>
        seen.textContent = [localStorage.a, sessionStorage.a, document.cookie, history.length, window.name].join('|');
        localStorage.a = sessionStorage.a = 'kept'; document.cookie = 'c=kept'; window.name = 'kept';</script>""",
    "/felt": """<div style='height:3000px'><button>one</button></div><script>
        const felt = [];
        for (const kind of ['mousemove', 'mouseover', 'mousedown', 'mouseup', 'keydown', 'focus', 'wheel'])
            addEventListener(kind, e => {
                felt.push([kind, e.key || [e.clientX, e.clientY], e.buttons, e.shiftKey].join(' '));
            }, {capture: true, passive: true});</script>""",
    "/late": "<button onclick='setTimeout(() => { document.title = \"late\"; }, 800)'>later</button>",
    "/tall": "<div style='height:3000px'>top</div><button onclick='document.title=\"low\"'>low</button>",
    "/keys": "<input id='a' onkeydown='document.title += event.key'>",
}


class Site:
    """Answers from PAGES, counts requests, and keeps what forms said."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.said: list[bytes] = []

    def __call__(self, request: Request) -> Response:
        path = urlsplit(request.path).path
        self.asked[path] += 1
        if path == "/away":
            return Response(status=302, headers={"Location": THERE + "/landed"})
        if path == "/round":
            return Response(status=302, headers={"Location": "/round"})
        if path == "/file.bin":
            return Response(b"x", "application/octet-stream", headers={"Content-Disposition": "attachment"})
        if path == "/said":
            self.said.append(request.body)
            return Response(b"<title>Said</title>thanks")
        if path == "/broken":
            raise KeyError("a mistake of the site")
        page = PAGES.get(path)
        return Response(page.encode()) if page is not None else Response(b"no such page", "text/plain", 404)


def sites(site: Site) -> Sites:
    return Sites({HERE: site})


@contextmanager
def serving(site: Callable[[Request], Response]) -> Iterator[str]:
    """A site on a loopback port, as sites that somebody runs are; its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = site(Request(self.command, self.path, headers, body))
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.kind, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
