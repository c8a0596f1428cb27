"""The client of a2a-sdk 1.x against our server: client_v1.py URL BINDING."""

import asyncio
import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import grpc
import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)

url, binding = sys.argv[1:3]
heard = []


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        heard.append((self.headers.get("authorization"), json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def said(text, task=None):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    if task:
        message.task_id = task
    return SendMessageRequest(message=message)


async def client(streaming):
    config = ClientConfig(
        streaming=streaming,
        supported_protocol_bindings=[binding],
        httpx_client=httpx.AsyncClient(trust_env=False),
        grpc_channel_factory=grpc.aio.insecure_channel,
    )
    return await create_client(url, client_config=config)


async def all_of(events):
    return [event async for event in events]


async def main():
    plain, live = await client(False), await client(True)

    [sent] = await all_of(plain.send_message(said("hello")))
    assert sent.task.status.state == TaskState.TASK_STATE_COMPLETED, sent
    assert sent.task.artifacts[0].parts[0].text == "You said hello", sent

    events = await all_of(live.send_message(said("hello")))
    assert events[0].WhichOneof("payload") == "task", events
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
    assert any(event.HasField("artifact_update") for event in events), events

    [asked] = await all_of(plain.send_message(said("ask")))
    assert asked.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, asked
    assert asked.task.status.message.parts[0].text == "Which city?", asked

    hook = HTTPServer(("127.0.0.1", 0), Hook)
    Thread(target=hook.serve_forever, daemon=True).start()
    config = TaskPushNotificationConfig(
        task_id=asked.task.id, url=f"http://127.0.0.1:{hook.server_port}/"
    )
    config.authentication.scheme = "Bearer"
    config.authentication.credentials = "hook-secret"
    await plain.create_task_push_notification_config(config)
    events = await all_of(live.send_message(said("Rome", asked.task.id)))
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
    for _ in range(200):
        if len(heard) >= 3:
            break
        await asyncio.sleep(0.02)
    assert heard[-1][0] == "Bearer hook-secret", heard
    assert heard[-1][1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED", heard

    events = live.send_message(said("wait"))
    first = await anext(events)
    watching = live.subscribe(SubscribeToTaskRequest(id=first.task.id))
    snapshot = await anext(watching)
    assert snapshot.task.id == first.task.id, snapshot
    cancelled = await plain.cancel_task(CancelTaskRequest(id=first.task.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
    for stream in (events, watching):
        rest = await all_of(stream)
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, rest

    got = await plain.get_task(GetTaskRequest(id=first.task.id))
    assert got.status.state == TaskState.TASK_STATE_CANCELED, got
    listed = await plain.list_tasks(ListTasksRequest(page_size=2))
    assert len(listed.tasks) == 2 and listed.total_size == 4, listed
    try:
        await plain.get_task(GetTaskRequest(id="nobody"))
        raise SystemExit("a task that is not there was found")
    except Exception as error:
        assert "TaskNotFound" in type(error).__name__, repr(error)
    print("ok")


asyncio.run(main())
