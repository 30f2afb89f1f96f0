"""A stand-in for the llama-server program that behaves as the name of its model says; what happens is noted beside the model."""

from __future__ import annotations

import http.server
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

ARGUMENTS = sys.argv[1:]
MODEL = ARGUMENTS[ARGUMENTS.index("--model") + 1]
BEHAVIOUR = Path(MODEL).read_bytes().decode("latin-1")
LOG = Path(MODEL + ".log")
LAYERS = int(ARGUMENTS[ARGUMENTS.index("--n-gpu-layers") + 1]) if "--n-gpu-layers" in ARGUMENTS else -1


def note(text):
    with LOG.open("a") as log:
        print(text, file=log)


def is_first():
    return LOG.read_text().count("started") == 1


def die(number=signal.SIGSEGV):
    os.kill(os.getpid(), number)
    threading.Event().wait()  # another thread may get the signal, a moment later


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            self.answer(200 if time.monotonic() > LOADED_AT else 503, {})
        elif self.headers["Authorization"] != "Bearer " + os.environ["LLAMA_API_KEY"]:
            self.answer(401, {})
        elif self.path == "/props":
            self.answer(200, {"model_path": MODEL, "default_generation_settings": {"n_ctx": 512}})
        elif self.path == "/slots":
            self.answer(200, [{"is_processing": "stuck" in BEHAVIOUR}])
        elif self.path == "/lora-adapters":
            if "deaf" in BEHAVIOUR and is_first():
                threading.Event().wait()
            self.answer(200, [])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            return self.answer(404, {})
        note("asked")
        if is_first():
            self.fail_at_first()
        if "die at work" in BEHAVIOUR:
            die()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.stream(asked)
        self.close_connection = True
        return None

    def fail_at_first(self):
        if "stop at first" in BEHAVIOUR:
            die(signal.SIGSTOP)
        if "deaf" in BEHAVIOUR or "stuck" in BEHAVIOUR:
            threading.Event().wait()
        if "die at first" in BEHAVIOUR:
            die()

    def stream(self, asked):
        if "endless" in asked["prompt"]:
            try:
                while True:
                    self.say({"content": "x", "tokens": [1]})
                    time.sleep(0.01)
            except OSError:
                note("left")
            return
        self.say({"content": "", "prompt_progress": {"total": 5, "cache": 2}})
        self.say({"content": "ok", "tokens": [1]})
        timings = {"cache_n": 2, "prompt_n": 3, "predicted_n": 1}
        self.say({"content": "", "stop": True, "stop_type": "eos", "timings": timings})

    def say(self, event):
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


note(f"started {os.getpid()} " + " ".join(ARGUMENTS))
if "noisy" in BEHAVIOUR:
    print("Content-Length: 3\r\n\r\n{}" * 400, flush=True)
if "always abort" in BEHAVIOUR:
    print("It is out of memory.", flush=True)
if ("abort on the GPU" in BEHAVIOUR and LAYERS != 0) or "always abort" in BEHAVIOUR:
    os.kill(os.getpid(), signal.SIGABRT)
if "abort with all layers" in BEHAVIOUR and LAYERS < 0:
    os.kill(os.getpid(), signal.SIGABRT)
if "for want of memory" in BEHAVIOUR:
    print("error loading model: mmap failed: Cannot allocate memory", flush=True)
if "refuse" in BEHAVIOUR:
    sys.exit("cannot load")
if "never loads" in BEHAVIOUR:
    threading.Event().wait()
SERVER = Server(("127.0.0.1", 0), Handler)
LOADED_AT = time.monotonic() + 0.1
print(f"main: server is listening on http://127.0.0.1:{SERVER.server_address[1]}", file=sys.stderr, flush=True)
SERVER.serve_forever()
