// Asks the server: one function a resource. Errors carry the server's own message, which names the
// cure. Every call takes an AbortSignal, so that what scrolled away is never waited for.
// Spec: docs/spec/http_api.md.
// SPDX-License-Identifier: Apache-2.0
import { Columns } from './columns';
import type {
  Details,
  FindingList,
  FlameButterfly,
  FlameDiffReply,
  FlameMoments,
  FlameReply,
  RunList,
  RunStatus,
  SearchHits,
  Summary,
  TaskLife,
} from './types';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** A stretch of time in bins: [t0, t0 + bin × bins), all in ns. */
export interface Window {
  t0: number;
  bin: number;
  bins: number;
}

/** What has details of its own by a number. */
export type DetailsOf = 'polls' | 'spans' | 'events' | 'samples' | 'dumps' | 'waits';

export type Query = Record<string, string | number | undefined>;
type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export class Client {
  constructor(
    private readonly token: string | null,
    private readonly fetcher: Fetch = (url, init) => fetch(url, init),
    private readonly base = 'api/v1/',
  ) {}

  runs(signal?: AbortSignal): Promise<RunList> {
    return this.json('runs', {}, signal);
  }
  open(run: string): Promise<RunStatus> {
    return this.post(`${path(run)}/open`);
  }
  close(run: string): Promise<RunStatus> {
    return this.post(`${path(run)}/close`);
  }
  status(run: string, signal?: AbortSignal): Promise<RunStatus> {
    return this.json(path(run), {}, signal);
  }
  summary(run: string, signal?: AbortSignal): Promise<Summary> {
    return this.json(`${path(run)}/summary`, {}, signal);
  }
  findings(run: string, signal?: AbortSignal): Promise<FindingList> {
    return this.json(`${path(run)}/findings`, {}, signal);
  }
  task(run: string, task: string, offset: number, limit: number, signal?: AbortSignal) {
    const at = `${path(run)}/tasks/${encodeURIComponent(task)}`;
    return this.json<TaskLife>(at, { offset, limit }, signal);
  }
  details(run: string, what: DetailsOf, index: number, signal?: AbortSignal) {
    return this.json<Details>(`${path(run)}/${what}/${index}`, {}, signal);
  }
  near(run: string, lane: number, at: number, signal?: AbortSignal): Promise<Details> {
    return this.json(`${path(run)}/near`, { lane, at }, signal);
  }
  search(run: string, q: string, limit: number, signal?: AbortSignal): Promise<SearchHits> {
    return this.json(`${path(run)}/search`, { q, limit }, signal);
  }
  flame(run: string, query: Query, signal?: AbortSignal): Promise<FlameReply> {
    return this.json(`${path(run)}/flame`, query, signal);
  }
  flameDiff(run: string, query: Query, signal?: AbortSignal): Promise<FlameDiffReply> {
    return this.json(`${path(run)}/flame/diff`, query, signal);
  }
  flameButterfly(run: string, query: Query, signal?: AbortSignal): Promise<FlameButterfly> {
    return this.json(`${path(run)}/flame/butterfly`, query, signal);
  }
  /** What is behind a node of the tree that flame() gives for the same query. */
  flameMoments(run: string, query: Query, node: number): Promise<FlameMoments> {
    return this.json(`${path(run)}/flame/moments`, { ...query, node });
  }
  /** Binary columns of a resource under the run, e.g. "lanes". */
  columns(run: string, resource: string, query: Query, signal?: AbortSignal): Promise<Columns> {
    return this.binary(`${path(run)}/${resource}`, query, signal);
  }

  private async json<T>(at: string, query: Query, signal?: AbortSignal): Promise<T> {
    return (await (await this.ask('GET', at, query, signal)).json()) as T;
  }
  private async post<T>(at: string): Promise<T> {
    return (await (await this.ask('POST', at, {}, undefined)).json()) as T;
  }
  private async binary(at: string, query: Query, signal?: AbortSignal): Promise<Columns> {
    return new Columns(await (await this.ask('GET', at, query, signal)).arrayBuffer());
  }

  private async ask(method: string, at: string, query: Query, signal?: AbortSignal) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) parameters.set(name, String(value));
    }
    const text = parameters.toString();
    const headers: Record<string, string> = {};
    if (this.token) headers['Authorization'] = `Bearer ${this.token}`;
    const init: RequestInit = { method, headers };
    if (signal) init.signal = signal;
    const url = `${this.base}${at}${text ? `?${text}` : ''}`;
    const response = await this.fetcher(url, init).catch((error: unknown) => {
      if (error instanceof DOMException && error.name === 'AbortError') throw error;
      throw new ApiError(
        0,
        'unreachable',
        'The server does not answer: is `dial9 serve` running?',
      );
    });
    if (!response.ok) throw await toError(response);
    return response;
  }
}

const path = (run: string) => `runs/${encodeURIComponent(run)}`;

async function toError(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as {
    error?: { code?: string; message?: string };
  } | null;
  const message = body?.error?.message ?? `the server answered ${response.status}`;
  return new ApiError(response.status, body?.error?.code ?? 'failed', message);
}

/** True for the error of a request that we gave up ourselves. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
