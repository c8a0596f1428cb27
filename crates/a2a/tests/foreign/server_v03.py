"""An agent of a2a-sdk 0.3 for our client: server_v03.py BINDING PORT. It echoes, asks and waits."""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task

binding, port = sys.argv[1], int(sys.argv[2])


def said(text):
    return [Part(root=TextPart(text=text))]


class Parley(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if text == "ask":
            await updater.requires_input(updater.new_agent_message(said("Which city?")), final=True)
            return
        if text == "wait":
            await asyncio.sleep(30)
        answer = f"Sunny in {text}" if context.current_task else f"You said {text}"
        await updater.add_artifact(said(answer))
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Parley",
    description="Echoes, asks and waits",
    version="1.0.0",
    url=f"http://127.0.0.1:{port}/",
    preferred_transport=binding,
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="parley", name="parley", description="Talks", tags=["talk"])],
)
handler = DefaultRequestHandler(agent_executor=Parley(), task_store=InMemoryTaskStore())
kind = A2ARESTFastAPIApplication if binding == "HTTP+JSON" else A2AStarletteApplication
app = kind(agent_card=card, http_handler=handler).build()


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("ready", flush=True)


asyncio.run(Server(uvicorn.Config(app, port=port, log_level="warning")).serve())
