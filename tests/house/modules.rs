//! The modules of the crate: what each defines, what it hands on, and who may name it.

use std::collections::HashMap;

use syn::{Item, UseTree, Visibility};

use crate::sources::{Source, is_for_tests};

#[derive(Default)]
struct Module {
    /// Its own items, and whether they are public.
    items: HashMap<String, bool>,
    /// The modules in it, and whether they are public.
    modules: HashMap<String, bool>,
    /// What it takes from elsewhere under a name, and whether that is public.
    imports: HashMap<String, (Vec<String>, bool)>,
    globs: Vec<(Vec<String>, bool)>,
}

pub(crate) struct Modules(HashMap<Vec<String>, Module>);

impl Modules {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let mut modules = Self(HashMap::new());
        for source in sources {
            let path: Vec<_> = source.module().into_iter().map(str::to_owned).collect();
            modules.add(&path, &source.syntax.items);
        }
        modules
    }

    fn add(&mut self, path: &[String], items: &[Item]) {
        let mut module = Module::default();
        for item in items.iter().filter(|item| !is_for_tests(item)) {
            let (ident, vis) = match item {
                Item::Const(item) => (&item.ident, &item.vis),
                Item::Enum(item) => (&item.ident, &item.vis),
                Item::Fn(item) => (&item.sig.ident, &item.vis),
                Item::Static(item) => (&item.ident, &item.vis),
                Item::Struct(item) => (&item.ident, &item.vis),
                Item::Trait(item) => (&item.ident, &item.vis),
                Item::Type(item) => (&item.ident, &item.vis),
                Item::Macro(item) => {
                    module.items.extend(item.ident.iter().map(|ident| (ident.to_string(), false)));
                    continue;
                }
                Item::Mod(item) => {
                    module.modules.insert(item.ident.to_string(), is_public(&item.vis));
                    if let Some((_, items)) = &item.content {
                        self.add(&[path, &[item.ident.to_string()]].concat(), items);
                    }
                    continue;
                }
                Item::Use(item) => {
                    import(&item.tree, &[], is_public(&item.vis), path, &mut module);
                    continue;
                }
                _ => continue,
            };
            let public = module.items.entry(ident.to_string()).or_default();
            *public |= is_public(vis);
        }
        self.0.insert(path.to_vec(), module);
    }

    pub(crate) fn contains(&self, module: &[String]) -> bool {
        self.0.contains_key(module)
    }

    /// Whether users of the crate can name it by this path from the root on. What belongs to a type is not looked into.
    pub(crate) fn is_public(&self, path: &[String]) -> bool {
        self.reaches(&[], path, 8)
    }

    fn reaches(&self, from: &[String], path: &[String], depth: usize) -> bool {
        let (Some(module), [name, rest @ ..]) = (self.0.get(from), path) else { return path.is_empty() };
        if depth == 0 {
            return false;
        }
        if name == "*" {
            return true;
        }
        if module.items.get(name).is_some_and(|public| *public) {
            return true;
        }
        if module.modules.get(name).is_some_and(|public| *public) {
            return self.reaches(&[from, std::slice::from_ref(name)].concat(), rest, depth);
        }
        if let Some((target, true)) = module.imports.get(name) {
            // It is handed on, so the place that it comes from need not be public.
            return rest.is_empty() || !self.contains(target) || self.reaches(target, rest, depth - 1);
        }
        module.globs.iter().any(|(target, public)| *public && self.reaches(target, path, depth - 1))
    }

    /// The module in which what a path from the root names is defined, behind whatever hands it on.
    pub(crate) fn home(&self, path: &[String]) -> Option<Vec<String>> {
        self.find(path, 8)
    }

    fn find(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        let mut at = Vec::new();
        for (place, name) in path.iter().enumerate() {
            let module = self.0.get(&at)?;
            let rest = &path[place + 1..];
            if module.modules.contains_key(name) {
                at.push(name.clone());
                continue;
            }
            if module.items.contains_key(name) || name == "*" {
                return Some(at);
            }
            let depth = depth.checked_sub(1)?;
            if let Some((target, _)) = module.imports.get(name) {
                return self.find(&[target, rest].concat(), depth);
            }
            let behind = |(target, _): &(Vec<String>, bool)| self.find(&[target, &path[place..]].concat(), depth);
            return module.globs.iter().find_map(behind);
        }
        Some(at)
    }
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn import(tree: &UseTree, before: &[String], public: bool, home: &[String], module: &mut Module) {
    let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => import(&path.tree, &with(&path.ident), public, home, module),
        UseTree::Name(last) => {
            if last.ident == "self" {
                let name = before.last().cloned().unwrap_or_default();
                module.imports.insert(name, (absolute(home, before), public));
            } else {
                module.imports.insert(last.ident.to_string(), (absolute(home, &with(&last.ident)), public));
            }
        }
        UseTree::Rename(last) => {
            module.imports.insert(last.rename.to_string(), (absolute(home, &with(&last.ident)), public));
        }
        UseTree::Glob(_) => module.globs.push((absolute(home, before), public)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| import(tree, before, public, home, module)),
    }
}

/// A path as it is written in a module, from the root of the crate on. One of another crate begins with `::`.
pub(crate) fn absolute(module: &[String], path: &[String]) -> Vec<String> {
    let mut home = module.to_vec();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => return path[1..].to_vec(),
        Some("self") => rest = &path[1..],
        Some("super") => {}
        _ => return [&["::".to_owned()], path].concat(),
    }
    while rest.first().is_some_and(|name| name == "super") {
        home.pop();
        rest = &rest[1..];
    }
    [home, rest.to_vec()].concat()
}
