"""JavaScript that a context runs in its pages: advance the clock, wait for layout, remove APIs."""

from __future__ import annotations

from functools import cache
from importlib import resources

TURN = """(async function turn(view, ms) {
  const clock = view.__pwClock;
  if (clock) try { await clock.controller.runFor(ms); } catch (error) {}
  for (let i = 0; i < view.frames.length; i++) try { await turn(view.frames[i], ms); } catch (error) {}
})(window, %s)"""
LAID_OUT = "document.documentElement && document.documentElement.offsetHeight"  # styles ask for their pictures then
DRAWN = """new Promise(done => {
  const real = window.__pwClock ? window.__pwClock.builtins.requestAnimationFrame : requestAnimationFrame;
  real(() => real(done));
})"""
POINTED = """new Promise(done => {
  const real = window.__pwClock ? window.__pwClock.builtins.requestAnimationFrame : requestAnimationFrame;
  let left = 30;
  const look = () => document.documentElement.matches(':hover') || !left-- ? done() : real(look);
  look();
})"""  # a tab that is new to a site is told once, some time later, that the mouse is at 0, 0: no page is to hear of it
REFUSE = """(() => {
  const scheme = location.protocol === 'https:' ? 'https' : 'http';
  const refused = kind => {
    fetch(`${scheme}://${kind}.refused.invalid/`, {mode: 'no-cors'}).catch(() => {});
    return new DOMException(`${kind} is not available here`, 'NotSupportedError');
  };
  const refuse = kind => function () { throw refused(kind); };
  for (const [name, kind] of Object.entries(%s)) {
    Object.defineProperty(window, name, {value: refuse(kind), configurable: false});
  }
  if (navigator.serviceWorker) {
    delete navigator.serviceWorker.register;  // Playwright's, which counts nothing and leaves the prototype's
    const register = {value: async () => { throw refused('serviceworker'); }, configurable: false};
    Object.defineProperty(ServiceWorkerContainer.prototype, 'register', register);
  }
})()"""  # no gate knows that host: it counts there what pages may not have
WEBRTC = dict.fromkeys(("RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"), "webrtc")
WORKERS = dict.fromkeys(("Worker", "SharedWorker"), "worker")


@cache
def script(name: str) -> str:
    """Return the source of a script file of this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
