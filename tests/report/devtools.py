# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium that is told what to do through a pipe, by the DevTools protocol
(https://chromedevtools.github.io/devtools-protocol/): keys as a keyboard sends them, and the tree that screen readers
get, neither of which a script in the page can have."""
import json
import os
import shutil
import subprocess
import tempfile
import time

IN, OUT = 3, 4 # the descriptors that --remote-debugging-pipe reads and writes


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return None


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        read, self.to = os.pipe()
        self.back, write = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--user-data-dir=" + self.folder, "--remote-debugging-pipe", "about:blank"]
        # A shell moves the ends of the pipes to where Chromium looks for them.
        script = 'exec "$0" "$@" %d<&%d %d>&%d' % (IN, read, OUT, write)
        self.process = subprocess.Popen(["bash", "-c", script, chromium(), *options], pass_fds=(read, write),
                                        stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.rest, self.number, self.session = b"", 0, None
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self.session = attached["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        first, self.rest = self.rest.split(b"\0", 1)
        return json.loads(first)

    def value(self, expression):
        """Of JavaScript, in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"]))
        return done["result"].get("value")

    def open(self, path, width=1300, height=900):
        """Returns when all panels of the page are there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="file://" + path)
        ready = ("location.protocol === 'file:' && document.readyState === 'complete' && "
                 "[...document.querySelectorAll('.body')].every(b => b.childElementCount)")
        for _ in range(600):
            if self.value(ready):
                return
            time.sleep(0.1)
        raise RuntimeError("the page's panels are not there after a minute")

    def press(self, key, code):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)
