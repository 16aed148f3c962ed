# extender.py
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Extender(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        clusters = [each["metadata"] for each in request["Clusters"]["items"]]
        ssd = [each["name"] for each in clusters if each.get("labels", {}).get("disk") == "ssd"]
        scores = [{"Host": each["name"], "Score": 10 if each["name"] in ssd else 0} for each in clusters]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"ClusterNames": ssd} if self.path == "/filter" else scores).encode())


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8888), Extender).serve_forever()
