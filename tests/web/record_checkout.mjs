// Records the checkout service under load, as examples/checkout/demo does: its store, the service with
// two faults, and the load generator, each on a port of its own, all ended and waited for.
// SPDX-License-Identifier: Apache-2.0
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const LOAD = ['--rate', '120', '--duration', '3', '--connections', '32', '--json'];

/** A started program, the port that it prints, and how to end it. */
function start(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, err] = ['', ''];
  child.stderr.on('data', (chunk) => (err += chunk));
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)));
  const port = new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      out += chunk;
      const match = /listening on .*:(\d+)\n/.exec(out);
      if (match) resolve(match[1]);
    });
    child.on('error', reject);
    ended.then((code) => reject(new Error(`${program} ended with ${code}: ${err}`)));
  });
  port.catch(() => undefined); // of the load generator nobody asks
  const stop = async () => {
    child.kill('SIGTERM');
    const code = await ended;
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${err}`);
  };
  return { port, ended, stop, kill: () => child.kill('SIGKILL'), log: () => err };
}

/** The folder of the recording: an empty one before. `programs` holds the three programs. */
export async function recordCheckout(programs, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const trace = join(folder, 'trace');
  const store = start(join(programs, 'checkout_kv'), ['--port', '0']);
  let service = null;
  try {
    service = start(join(programs, 'checkout'), [
      '--port', '0', '--kv-port', await store.port, '--audit', join(folder, 'audit.jsonl'),
      '--trace-dir', trace, '--fault', 'long-handler,blocking-read',
    ]);
    const load = start(join(programs, 'checkout_load'), ['--port', await service.port, ...LOAD]);
    const code = await load.ended;
    if (typeof code !== 'number') throw new Error(`the load generator was ended by ${code}`);
    await service.stop();
  } finally {
    service?.kill();
    store.kill();
    await store.ended;
  }
  return trace;
}
