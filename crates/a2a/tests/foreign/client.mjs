// The client of @a2a-js/sdk against our server: client.mjs URL BINDING

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client';
import { Role, TaskState } from '@a2a-js/sdk';

const [url, binding] = process.argv.slice(2);
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  preferredTransports: [binding],
});
const client = await new ClientFactory(options).createFromUrl(url);

const said = (text, taskId = '') => ({
  tenant: '',
  message: {
    messageId: randomUUID(),
    role: Role.ROLE_USER,
    taskId,
    contextId: '',
    parts: [
      { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' },
    ],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: undefined,
});
const taskOf = (result) => result.payload?.value ?? result;
const all = async (stream) => {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
};
const stateOf = (event) => {
  const { $case, value } = event.payload;
  return $case === 'task' || $case === 'statusUpdate' ? value.status.state : undefined;
};

const task = taskOf(await client.sendMessage(said('hello')));
assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
assert.equal(task.artifacts[0].parts[0].content.value, 'You said hello');

let events = await all(client.sendMessageStream(said('hello')));
assert.equal(events[0].payload.$case, 'task');
assert.equal(stateOf(events.at(-1)), TaskState.TASK_STATE_COMPLETED);

const asked = taskOf(await client.sendMessage(said('ask')));
assert.equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);

const heard = [];
const hook = createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => (body += piece));
  request.on('end', () => {
    heard.push([request.headers.authorization, JSON.parse(body)]);
    response.end();
  });
});
await new Promise((resolve) => hook.listen(0, '127.0.0.1', resolve));
await client.createTaskPushNotificationConfig({
  tenant: '',
  id: '',
  taskId: asked.id,
  url: `http://127.0.0.1:${hook.address().port}/`,
  token: '',
  authentication: { scheme: 'Bearer', credentials: 'hook-secret' },
});
events = await all(client.sendMessageStream(said('Rome', asked.id)));
assert.equal(stateOf(events.at(-1)), TaskState.TASK_STATE_COMPLETED);
for (let n = 0; n < 200 && heard.length < 3; n++) await new Promise((r) => setTimeout(r, 20));
assert.equal(heard.at(-1)[0], 'Bearer hook-secret');
assert.equal(heard.at(-1)[1].statusUpdate.status.state, 'TASK_STATE_COMPLETED');
hook.close();

const stream = client.sendMessageStream(said('wait'));
const first = (await stream.next()).value.payload.value;
const watching = client.resubscribeTask({ tenant: '', id: first.id });
assert.equal((await watching.next()).value.payload.value.id, first.id);
const cancelled = await client.cancelTask({ tenant: '', id: first.id, metadata: undefined });
assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
for (const one of [stream, watching]) {
  assert.equal(stateOf((await all(one)).at(-1)), TaskState.TASK_STATE_CANCELED);
}
console.log('ok');
process.exit(0);
