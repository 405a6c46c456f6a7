// What the server refuses, asked over a real connection as a foreign page or a rebound name would.
// SPDX-License-Identifier: Apache-2.0
import { request } from 'node:http';
import { expect } from './harness.mjs';

function ask(url, path, headers, method = 'GET') {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += chunk));
      response.on('end', () => resolve({ status: response.statusCode, body }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

export async function checkAccess(checks, { url }) {
  await checks.run('a rebound name and a foreign origin are refused', async () => {
    const rebound = await ask(url, '/api/v1/runs', { Host: 'evil.example' });
    expect(rebound.status === 403, `rebound: ${rebound.status}`);
    const foreign = await ask(url, '/api/v1/runs/tiny.bin/open', { Origin: 'http://evil.example' }, 'POST');
    expect(foreign.status === 403, `foreign: ${foreign.status}`);
  });

  await checks.run('no path leads out of the served directory', async () => {
    for (const path of ['/../../etc/passwd', '/..%2f..%2fetc%2fpasswd', '/%2e%2e/etc/passwd',
      '/api/v1/runs/..%2f..%2fetc%2fpasswd', '/api/v1/runs/%2fetc%2fpasswd/summary']) {
      const { status, body } = await ask(url, path, {});
      expect(status >= 400 && status < 500 && !body.includes('root:'), `${path}: ${status}`);
    }
  });
}
