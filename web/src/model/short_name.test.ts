// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { bareName, shortName } from './short_name';

it.each([
  ['main', 'main'],
  ['[no stack]', '[no stack]'],
  ['libfoo.so+0x1a20', 'libfoo.so+0x1a20'],
  ['checkout::(anonymous namespace)::burn(std::chrono::duration<long>)', 'checkout::burn'],
  ['void a::b<c<d>, e>::copy<f>(g const&) const', 'a::b::copy'],
  ['a::run(int) const::{lambda(b)#1}::operator()(b) const', 'a::run::{lambda#1}::operator()'],
  ['std::operator<< <char>(std::ostream&)', 'std::operator<<'],
  ['a::operator bool() const', 'a::operator bool'],
  ['a::end() [clone .cold]', 'a::end'],
  ['void a::cut<b::c<d, e::f…#12', 'a::cut<…'],
  ['<hyper::Conn<I,S> as core::future::Future>::poll', 'hyper::Conn::poll'],
  ['<T as a::Into<U>>::into::{{closure}}', 'T::into::{{closure}}'],
  ['<<A as b::C>::D as e::F>::run', 'A::D::run'],
  ['<a::B<fn(c) -> d>>::e', 'a::B::e'],
  ['<&mut dyn a::B as c::D>::e', 'a::B::e'],
])('%s is %s without what surrounds it', (name, bare) => expect(bareName(name)).toBe(bare));

it('shows the innermost of a name that is too long', () => {
  const name = 'void alpha::beta::gamma<int>(long, long)';
  expect(shortName(name, 60)).toBe(name);
  expect(shortName(name, 20)).toBe('alpha::beta::gamma');
  expect(shortName(name, 12)).toBe('beta::gamma');
  expect(shortName(name, 4)).toBe('gam…');
});
