"""The client of a2a-sdk 0.3 against our server: client_v03.py URL BINDING."""

import asyncio
import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    Message,
    Part,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
)

url, binding = sys.argv[1:]
heard = []


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        heard.append((self.headers.get("x-a2a-notification-token"), json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def said(text, task=None):
    return Message(
        message_id=str(uuid.uuid4()),
        role=Role.user,
        parts=[Part(root=TextPart(text=text))],
        task_id=task,
    )


async def client(streaming):
    config = ClientConfig(
        streaming=streaming,
        supported_transports=[binding],
        httpx_client=httpx.AsyncClient(trust_env=False),
    )
    return await ClientFactory.connect(url, client_config=config)


async def all_of(events):
    return [event async for event in events]


async def main():
    plain, live = await client(False), await client(True)

    [(task, _)] = await all_of(plain.send_message(said("hello")))
    assert task.status.state == TaskState.completed, task
    assert task.artifacts[0].parts[0].root.text == "You said hello", task

    events = await all_of(live.send_message(said("hello")))
    assert events[-1][1].final and events[-1][0].status.state == TaskState.completed, events
    assert events[-1][0].artifacts[0].parts[0].root.text == "You said hello", events

    [(asked, _)] = await all_of(plain.send_message(said("ask")))
    assert asked.status.state == TaskState.input_required, asked
    assert asked.status.message.parts[0].root.text == "Which city?", asked

    hook = HTTPServer(("127.0.0.1", 0), Hook)
    Thread(target=hook.serve_forever, daemon=True).start()
    config = PushNotificationConfig(url=f"http://127.0.0.1:{hook.server_port}/", token="tok")
    await plain.set_task_callback(
        TaskPushNotificationConfig(task_id=asked.id, push_notification_config=config)
    )
    events = await all_of(live.send_message(said("Rome", asked.id)))
    assert events[-1][0].status.state == TaskState.completed, events
    for _ in range(200):
        if len(heard) >= 3:
            break
        await asyncio.sleep(0.02)
    token, told = heard[-1]
    assert token == "tok" and told["kind"] == "task", heard
    assert told["status"]["state"] == "completed", heard

    events = live.send_message(said("wait"))
    task, _ = await anext(events)
    watching = live.resubscribe(TaskIdParams(id=task.id))
    await anext(watching)
    cancelled = await plain.cancel_task(TaskIdParams(id=task.id))
    assert cancelled.status.state == TaskState.canceled, cancelled
    rest = await all_of(watching)
    assert rest[-1][0].status.state == TaskState.canceled, rest
    got = await plain.get_task(TaskQueryParams(id=task.id))
    assert got.status.state == TaskState.canceled, got
    print("ok")


asyncio.run(main())
