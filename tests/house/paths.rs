//! Every path that a file names, in `use` and anywhere else, with its groups spread out.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{
    Attribute, ExprMethodCall, ExprPath, ImplItemFn, Item, ItemMod, ItemUse, Macro, TypePath, UseTree, Visibility,
    visit::{self, Visit},
};

use crate::sources::{is_for_tests, is_test_attribute};

#[derive(Debug)]
pub(crate) struct Found {
    /// The modules of this file around it.
    pub(crate) inside: Vec<String>,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    /// Whether it is in a `use`, and whether that hands it on.
    pub(crate) import: Option<Import>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Import {
    Private,
    HandedOn,
}

/// A method that is called, and where.
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) line: usize,
}

#[derive(Default)]
pub(crate) struct Reader {
    inside: Vec<String>,
    pub(crate) found: Vec<Found>,
    pub(crate) called: Vec<Called>,
}

pub(crate) fn read(file: &syn::File) -> Reader {
    let mut reader = Reader::default();
    reader.visit_file(file);
    reader
}

impl Reader {
    fn add(&mut self, path: Vec<String>, line: usize, import: Option<Import>) {
        if path.len() > 1 {
            self.found.push(Found { inside: self.inside.clone(), path, line, import });
        }
    }

    fn tree(&mut self, tree: &UseTree, before: &[String], import: Import) {
        let with = |ident: &Ident| [before, &[name(ident)]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident), import),
            // The module that the group is of.
            UseTree::Name(last) if last.ident == "self" => self.add(before.to_vec(), line(&last.ident), Some(import)),
            UseTree::Name(last) => self.add(with(&last.ident), line(&last.ident), Some(import)),
            UseTree::Rename(last) => self.add(with(&last.ident), line(&last.ident), Some(import)),
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.add([before, &["*".to_owned()]].concat(), line, Some(import));
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before, import)),
        }
    }

    /// Reads what a macro is given or defined by.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(ident) => {
                    let after_dot = at > 0 && is(&tokens, at - 1, '.') && !(at > 1 && is(&tokens, at - 2, '.'));
                    if after_dot {
                        self.called.push(Called { name: name(ident), line: line(ident) });
                        at += 1;
                    } else {
                        at = self.spread(&tokens, at, &[]);
                    }
                }
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Reads the path at `at`; returns its end.
    fn spread(&mut self, tokens: &[TokenTree], at: usize, before: &[String]) -> usize {
        let TokenTree::Ident(ident) = &tokens[at] else { return at + 1 };
        let path = [before, &[name(ident)]].concat();
        if is(tokens, at + 1, ':') && is(tokens, at + 2, ':') {
            match tokens.get(at + 3) {
                Some(TokenTree::Ident(_)) => return self.spread(tokens, at + 3, &path),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    let mut next = 0;
                    while next < inner.len() {
                        let starts = next == 0 || is(&inner, next - 1, ',');
                        next = if starts { self.spread(&inner, next, &path) } else { next + 1 };
                    }
                    return at + 4;
                }
                _ => {}
            }
        }
        self.add(path, line(ident), None);
        at + 1
    }
}

fn is(tokens: &[TokenTree], at: usize, sign: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn name(ident: &Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

fn line(ident: &Ident) -> usize {
    ident.span().start().line
}

impl Visit<'_> for Reader {
    fn visit_attribute(&mut self, _: &Attribute) {}

    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_item(&mut self, item: &Item) {
        if !is_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        if !function.attrs.iter().any(is_test_attribute) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &ItemMod) {
        self.inside.push(name(&module.ident));
        visit::visit_item_mod(self, module);
        self.inside.pop();
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        let import = if matches!(item.vis, Visibility::Inherited) { Import::Private } else { Import::HandedOn };
        self.tree(&item.tree, &[], import);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if let Some(first) = path.segments.first() {
            let line = line(&first.ident);
            self.add(path.segments.iter().map(|segment| name(&segment.ident)).collect(), line, None);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, path: &ExprPath) {
        match &path.qself {
            // What follows a type in brackets is not a path of modules.
            Some(of) if of.position == 0 => self.visit_type(&of.ty),
            _ => visit::visit_expr_path(self, path),
        }
    }

    fn visit_type_path(&mut self, path: &TypePath) {
        match &path.qself {
            Some(of) if of.position == 0 => self.visit_type(&of.ty),
            _ => visit::visit_type_path(self, path),
        }
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        self.called.push(Called { name: name(&call.method), line: line(&call.method) });
        visit::visit_expr_method_call(self, call);
    }
}
