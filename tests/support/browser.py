"""A headless Chromium, driven through chromedriver's plain HTTP (https://www.w3.org/TR/webdriver2)."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import Request, urlopen

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--force-device-scale-factor=1",
)
START_SECONDS = 30


def browser_paths() -> tuple[str, str] | None:
    """Chromium and its driver, where both are installed."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    """One window; `with Browser(...) as browser`."""

    def __init__(self, profile: Path, width: int = 640, height: int = 600, dark: bool = False) -> None:
        found = browser_paths()
        assert found is not None
        self.profile = profile
        arguments = [*ARGUMENTS, f"--window-size={width},{height}", f"--user-data-dir={profile}"]
        arguments += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
        self._options = {"binary": found[0], "args": arguments}
        self._driver = found[1]

    def __enter__(self) -> Browser:
        log = self.profile.parent / "driver.log"
        with log.open("w") as file:
            self.process = subprocess.Popen([self._driver, "--port=0"], stdout=file, stderr=subprocess.STDOUT)
        self._root = f"http://127.0.0.1:{self._port(log)}"
        wanted = {
            "goog:chromeOptions": self._options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.process.kill()
            raise
        self._root += f"/session/{answer['sessionId']}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._call("DELETE", "", None)
        finally:
            self.process.kill()
            self.process.wait()

    def _port(self, log: Path) -> int:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            found = re.search(r"started successfully on port (\d+)", log.read_text())
            if found:
                return int(found[1])
            time.sleep(0.05)
        self.process.kill()
        raise TimeoutError(log.read_text())

    def _call(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, path: Path) -> None:
        """Open a local page."""
        self._call("POST", "/url", {"url": path.resolve().as_uri()})

    def resize(self, width: int, height: int) -> None:
        """Resize the window."""
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript and return its result (use `return`)."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, seconds: float = 20.0) -> Any:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(f"return {script}")
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError(f"{script} did not become true")
            time.sleep(0.05)

    def type(self, selector: str, text: str) -> None:
        """Click an element and type text into it."""
        (element,) = self._call("POST", "/element", {"using": "css selector", "value": selector}).values()
        self._call("POST", f"/element/{element}/click", {})
        self._call("POST", f"/element/{element}/value", {"text": text})

    def drag(self, selector: str, dx: int, dy: int) -> None:
        """Drag with the left button, from the middle of an element."""
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        moves = [
            {"type": "pointerMove", "origin": element, "x": 0, "y": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "origin": "pointer", "x": dx, "y": dy, "duration": 100},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self._call("POST", "/actions", {"actions": [mouse]})

    def picture(self, selector: str) -> bytes:
        """PNG of an element."""
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        (reference,) = element.values()
        return base64.b64decode(self._call("GET", f"/element/{reference}/screenshot", None))

    def log(self, kind: str) -> list[dict[str, Any]]:
        """Log entries since the last call: `browser` (the console) or `performance` (network events)."""
        found: list[dict[str, Any]] = self._call("POST", "/se/log", {"type": kind})
        return found

    def requests(self) -> list[str]:
        """Addresses that the page requested, other than its own."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        urls = [e["request"]["url"] for e in sent if e["documentURL"].startswith("file:")]
        return [url for url in urls if not url.startswith("file:")]
