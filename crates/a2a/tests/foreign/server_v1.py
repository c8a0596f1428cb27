"""An agent of a2a-sdk 1.x for our client: server_v1.py PORT. It echoes, asks and waits."""

import asyncio
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
)
from starlette.applications import Starlette

port = int(sys.argv[1])


class Parley(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if text == "ask":
            question = updater.new_agent_message([Part(text="Which city?")])
            await updater.requires_input(question)
            return
        if text == "wait":
            await asyncio.sleep(30)
        answer = f"Sunny in {text}" if context.current_task else f"You said {text}"
        await updater.add_artifact([Part(text=answer)])
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="Parley",
    description="Echoes, asks and waits",
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(
            url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC", protocol_version="1.0"
        )
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="parley", name="parley", description="Talks", tags=["talk"])],
)
handler = DefaultRequestHandler(
    agent_executor=Parley(), task_store=InMemoryTaskStore(), agent_card=card
)
routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/")


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("ready", flush=True)


config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="warning")
asyncio.run(Server(config).serve())
