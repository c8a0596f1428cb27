// An agent of @a2a-js/sdk for our client: server.mjs PORT. It echoes, asks and waits.

import { randomUUID } from 'node:crypto';
import express from 'express';
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler } from '@a2a-js/sdk/server/express';

const port = Number(process.argv[2]);
const part = (text) => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: '',
});
const cancelled = new Set();

class Parley {
  async execute({ userMessage, task, taskId, contextId }, bus) {
    const status = (state, text) => ({
      state,
      message: text && {
        messageId: randomUUID(),
        role: Role.ROLE_AGENT,
        taskId,
        contextId,
        parts: [part(text)],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      },
      timestamp: new Date().toISOString(),
    });
    const enter = (state, text) =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: status(state, text),
          metadata: undefined,
        }),
      );
    if (!task) {
      bus.publish(
        AgentEvent.task({
          id: taskId,
          contextId,
          status: status(TaskState.TASK_STATE_SUBMITTED),
          artifacts: [],
          history: [userMessage],
          metadata: undefined,
        }),
      );
    }
    enter(TaskState.TASK_STATE_WORKING);
    const text = userMessage.parts[0].content.value;
    if (text === 'ask') {
      enter(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which city?');
      bus.finished();
      return;
    }
    for (let n = 0; text === 'wait' && n < 300; n++) {
      if (cancelled.has(taskId)) {
        enter(TaskState.TASK_STATE_CANCELED);
        bus.finished();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact: {
          artifactId: randomUUID(),
          name: '',
          description: '',
          parts: [part(task ? `Sunny in ${text}` : `You said ${text}`)],
          metadata: undefined,
          extensions: [],
        },
        append: false,
        lastChunk: true,
        metadata: undefined,
      }),
    );
    enter(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  async cancelTask(taskId) {
    cancelled.add(taskId);
  }
}

const card = {
  name: 'Parley',
  description: 'Echoes, asks and waits',
  version: '1.0.0',
  supportedInterfaces: [
    {
      url: `http://127.0.0.1:${port}/`,
      protocolBinding: 'JSONRPC',
      protocolVersion: '1.0',
      tenant: '',
    },
  ],
  provider: undefined,
  capabilities: { streaming: true, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Parley());
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, '127.0.0.1', () => console.log('ready'));
