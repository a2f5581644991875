"""The socket: who gets in, what a request may cost, and what a dead daemon leaves. Source: targets 30, ruling D6."""

import json
import os
import socket
import stat
import threading

import pytest

from daemon.place import server_socket
from daemon.sockets import CLIENTS, REQUEST_BYTES, Server, ask


@pytest.fixture
def runtime(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def root(tmp_path, runtime):
    return tmp_path


@pytest.fixture
def serve(root):
    """Starts a server of `root` that answers with `handle`; stopped at the end of the test."""
    servers = []

    def start(handle=lambda request: {"echo": request}, on_error=None):
        errors = []
        server = Server(server_socket(root), handle, on_error or errors.append)
        server.errors = errors
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()


def connect(server):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(str(server.path))
    return client


def read_all(client):
    parts = []
    while block := client.recv(65536):
        parts.append(block)
    return b"".join(parts)


def test_a_question_gets_its_answer(root, serve):
    serve()
    assert ask(root, "status", deep=True) == {"echo": {"verb": "status", "deep": True}}


def test_without_a_daemon_there_is_no_answer(root):
    assert ask(root, "status") is None


def test_several_requests_share_a_connection(serve):
    with connect(serve(lambda request: {"n": request["n"]})) as client:
        client.sendall(b'{"verb":"a","n":1}\n{"verb":"a","n":2}\n')
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == b'{"n":1}\n{"n":2}\n'


def test_folder_and_socket_are_closed_to_others(serve):
    before = os.umask(0)
    try:
        server = serve()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.lstat(server.path.parent).st_mode) == 0o700
    assert stat.S_IMODE(os.lstat(server.path).st_mode) == 0o600


def test_a_folder_of_ours_that_is_open_to_others_is_closed_first(serve, runtime):
    (runtime / "shapeupd").mkdir(mode=0o755)
    server = serve()
    assert stat.S_IMODE(os.lstat(server.path.parent).st_mode) == 0o700


def test_a_link_in_place_of_the_folder_is_refused_by_both_sides(root, runtime, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (runtime / "shapeupd").symlink_to(elsewhere)
    with pytest.raises(PermissionError):
        Server(server_socket(root), dict, print)
    assert ask(root, "status") is None


def test_what_a_dead_daemon_left_is_replaced(root, serve):
    path = server_socket(root)
    path.parent.mkdir(mode=0o700)
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    assert ask(root, "status") is None
    serve()
    assert ask(root, "status") is not None


def test_a_plain_file_at_the_path_is_left_alone(root):
    path = server_socket(root)
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    with pytest.raises(OSError, match="in use"):
        Server(path, dict, print)
    assert path.read_text() == "precious"


def test_a_clean_stop_removes_the_socket_and_only_its_own(root, serve):
    first = serve()
    first.stop()
    assert not first.path.exists()
    second = serve()
    first.stop()
    assert second.path.exists()


def test_a_deep_repository_still_has_a_socket(root, serve):
    serve()
    deep = root / ("x" * 200) / ("y" * 200)
    assert len(os.fsencode(server_socket(deep))) <= 107


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"verb": 1}', b'"status"', b"[" * 5000, b"\xff"])
def test_a_malformed_request_is_told_so(serve, line):
    server = serve()
    with connect(server) as client:
        client.sendall(line + b"\n")
        client.shutdown(socket.SHUT_WR)
        assert "error" in json.loads(read_all(client))
    assert server.errors == []


def test_a_request_over_the_limit_is_refused(serve):
    with connect(serve()) as client:
        client.sendall(b" " * (REQUEST_BYTES + 1))
        assert b"65536 bytes" in client.recv(65536)


def test_an_answer_may_be_larger_than_a_request(root, serve):
    serve(lambda request: {"text": "x" * (4 * REQUEST_BYTES)})
    assert len(ask(root, "status")["text"]) == 4 * REQUEST_BYTES


def test_a_handler_that_fails_is_told_to_the_daemon_and_not_in_detail_to_the_client(root, serve):
    def fail(request):
        raise RuntimeError("secret")

    server = serve(fail)
    assert "secret" not in ask(root, "status")["error"]
    assert [str(error) for error in server.errors] == ["secret"]
    assert server.is_alive()


def test_a_slow_client_is_dropped_after_its_second_and_delays_nobody(root, serve, monkeypatch):
    server = serve()
    with connect(server) as slow:
        slow.sendall(b'{"verb":')
        assert ask(root, "status") is not None
        assert read_all(slow) == b""  # closed by the server


def test_more_clients_than_slots_are_told_to_come_again(root, serve):
    release = threading.Event()
    server = serve(lambda request: {"released": release.wait(30)})
    waiting = [connect(server) for _ in range(CLIENTS)]
    for client in waiting:
        client.sendall(b'{"verb":"wait"}\n')
    with connect(server) as extra:
        assert b"64 clients" in extra.recv(65536)
    release.set()
    for client in waiting:
        assert client.recv(65536) == b'{"released":true}\n'
        client.close()


def test_a_socket_that_a_cleaner_removed_comes_back(root, serve, monkeypatch):
    monkeypatch.setattr("daemon.sockets._LOOK_S", 0.05)
    server = serve()
    server.path.unlink()
    deadline = threading.Event()
    for _ in range(200):
        if ask(root, "status") is not None:
            break
        deadline.wait(0.05)
    else:
        pytest.fail("the daemon stayed unreachable")


def test_a_daemon_that_dies_while_we_speak_gives_no_answer(root):
    path = server_socket(root)
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        assert ask(root, "status") is None
        thread.join()


def test_a_daemon_that_does_not_answer_in_time_is_no_missing_one(root, serve):
    release = threading.Event()
    serve(lambda request: {"released": release.wait(30)})
    with pytest.raises(TimeoutError):
        ask(root, "status", timeout_s=0.05)
    release.set()
