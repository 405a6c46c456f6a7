// The bearer token of a server that isn't on loopback: taken once from the URL's fragment, which
// browsers never send, then kept for this tab only and removed from the address.
// SPDX-License-Identifier: Apache-2.0
const KEY = 'dial9.token';

export function takeToken(): string | null {
  const fragment = new URLSearchParams(location.hash.replace(/^#/, ''));
  const given = fragment.get('token');
  if (given) {
    sessionStorage.setItem(KEY, given);
    fragment.delete('token');
    history.replaceState(null, '', `${location.pathname}#${fragment.toString()}`);
  }
  return sessionStorage.getItem(KEY);
}
