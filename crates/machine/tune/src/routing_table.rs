//! The routing table's operations, one by one: a test counts them and simulates a crash after
//! each.

use crate::ThisHost;
use host::kernel_route::KernelRoute;
use host::route_table::{self, Surroundings};
use record::RoutePrefix;
use std::io;
use std::net::IpAddr;

/// The kernel's routes.
pub trait RoutingTable {
    /// The main table's routes to a prefix and to prefixes that contain it.
    ///
    /// # Errors
    /// The system's.
    fn around(&self, prefix: RoutePrefix) -> io::Result<Surroundings>;

    /// The route that packets to an address take, in whichever table.
    ///
    /// # Errors
    /// The system's; also if there is none.
    fn lookup(&self, address: IpAddr) -> io::Result<KernelRoute>;

    /// Checks whether routes may be changed; changes none.
    ///
    /// # Errors
    /// The system's, where they may not.
    fn may_change(&self) -> io::Result<()>;

    /// Adds a route.
    ///
    /// # Errors
    /// The system's; `AlreadyExists` if there is one to that prefix with that priority.
    fn add(&self, route: &KernelRoute) -> io::Result<()>;

    /// Replaces the route to the same prefix with the same priority, atomically.
    ///
    /// # Errors
    /// The system's; `NotFound` if there is none.
    fn replace(&self, route: &KernelRoute) -> io::Result<()>;

    /// Deletes a route that Longhaul added, and no other.
    ///
    /// # Errors
    /// The system's; `NotFound` if there is no such route of Longhaul's.
    fn delete(&self, route: &KernelRoute) -> io::Result<()>;
}

impl RoutingTable for ThisHost {
    fn around(&self, prefix: RoutePrefix) -> io::Result<Surroundings> {
        route_table::around(prefix)
    }

    fn lookup(&self, address: IpAddr) -> io::Result<KernelRoute> {
        route_table::lookup(address)
    }

    fn may_change(&self) -> io::Result<()> {
        route_table::may_change()
    }

    fn add(&self, route: &KernelRoute) -> io::Result<()> {
        route_table::add(route)
    }

    fn replace(&self, route: &KernelRoute) -> io::Result<()> {
        route_table::replace(route)
    }

    fn delete(&self, route: &KernelRoute) -> io::Result<()> {
        route_table::delete(route)
    }
}
